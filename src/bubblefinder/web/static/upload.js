"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const form = byId("upload"), drop = byId("drop"), sending = byId("sending"), bar = byId("sending-bar");
  const inputs = [byId("file"), byId("baseline")];
  const limit = Number(form.dataset.limit);
  let request = null;

  document.querySelectorAll("[data-script]").forEach((one) => { one.hidden = false; });

  const say = (problem) => {
    byId("problem").textContent = problem;
    byId("problem").hidden = !problem;
  };
  const chosen = () => inputs.map((input) => input.files[0]);
  const put = (input, file) => {
    const transfer = new DataTransfer();
    if (file) transfer.items.add(file);
    input.files = transfer.files;
  };
  const changed = () => {
    const [file, baseline] = chosen();
    byId("swap").hidden = !(file && baseline);
    const large = [file, baseline].find((one) => one && one.size > limit);
    say(large ? `${large.name} is longer than the ${form.dataset.limitWords} that the server takes.` : "");
    return !large;
  };

  const size = (bytes) => bytes < 1 << 20 ? `${Math.ceil(bytes / 1024)} KiB` : bytes < 1 << 30 ? `${(bytes / (1 << 20)).toFixed(1)} MiB` : `${(bytes / (1 << 30)).toFixed(2)} GiB`;
  const left = (seconds) => seconds < 90 ? `${Math.ceil(seconds)} s left` : `${Math.ceil(seconds / 60)} min left`;

  // One PUT with the raw file as its body; the browser streams it from disk.
  const send = (file, query, told) => new Promise((resolve, reject) => {
    const parameters = new URLSearchParams({ name: file.name, ...query });
    request = new XMLHttpRequest();
    request.open("PUT", `/api/runs?${parameters}`);
    request.upload.addEventListener("progress", (event) => told(event.loaded));
    request.addEventListener("load", () => {
      let answer = {};
      try { answer = JSON.parse(request.responseText); } catch { /* not from bubblefinder */ }
      if (request.status === 202) resolve(answer);
      else reject(new Error([answer.error || `The server answered ${request.status}.`, answer.hint].filter(Boolean).join(" ")));
    });
    request.addEventListener("error", () => reject(new Error("The connection to the server broke. It may have refused the file, or have been stopped.")));
    request.addEventListener("abort", () => reject(new Error("Stopped.")));
    request.send(file);
  });

  const upload = async () => {
    const [file, baseline] = chosen();
    const files = [baseline, file].filter(Boolean);
    const total = files.reduce((sum, one) => sum + one.size, 0);
    const begun = performance.now();
    let sent = 0;
    const told = (name) => (loaded) => {
      const done = sent + loaded, rate = done / Math.max((performance.now() - begun) / 1000, 0.001);
      bar.value = total ? done / total : 1;
      byId("sending-what").textContent = files.length > 1 ? `Uploading ${name} (${files.findIndex((one) => one.name === name) + 1} of 2)` : `Uploading ${name}`;
      byId("sending-rate").textContent = `${size(done)} of ${size(total)}, ${size(rate)}/s, ${left((total - done) / Math.max(rate, 1))}`;
    };
    const query = {};
    let baselineId = null;
    if (baseline) {
      baselineId = (await send(baseline, {}, told(baseline.name))).id;
      sent = baseline.size;
    }
    if (byId("label").value.trim()) query.label = byId("label").value;
    if (byId("commit").value.trim()) query.commit = byId("commit").value;
    if (baselineId) query.baseline = baselineId;
    const { url } = await send(file, query, told(file.name));
    return baselineId ? `${url}?then=diff` : url;
  };

  const start = async () => {
    if (!changed()) return;
    const button = form.querySelector(".primary");
    button.disabled = true;
    sending.hidden = false;
    bar.value = 0;
    try {
      location.assign(await upload());
    } catch (error) {
      say(error.message);
      sending.hidden = true;
      button.disabled = false;
    }
  };

  form.addEventListener("submit", (event) => { event.preventDefault(); start(); });
  byId("sending-stop").addEventListener("click", () => request && request.abort());
  byId("swap").addEventListener("click", () => {
    const [file, baseline] = chosen();
    put(inputs[0], baseline);
    put(inputs[1], file);
    changed();
  });
  inputs.forEach((input) => input.addEventListener("change", changed));

  let depth = 0;
  const over = (shift) => { depth = Math.max(depth + shift, 0); drop.classList.toggle("over", depth > 0); };
  addEventListener("dragenter", (event) => { event.preventDefault(); over(1); });
  addEventListener("dragleave", () => over(-1));
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    depth = 0;
    over(0);
    const files = [...event.dataTransfer.files];
    if (!files.length) return;
    if (files.length > 2) { say("Drop one or two files: a trace and its baseline."); return; }
    if (files.length === 2) files.forEach((file, index) => put(inputs[index], file));
    else put(inputs[inputs[0].files.length && event.target.closest(".slot")?.contains(inputs[1]) ? 1 : 0], files[0]);
    if (changed()) form.querySelector(".primary").focus();
  });
})();
