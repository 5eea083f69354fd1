// Every few seconds the live part is fetched again; what the reader has unfolded stays unfolded.
const live = document.getElementById("live"), lost = document.getElementById("lost");
let shown = "";
function dress() {
  for (const time of live.querySelectorAll("time")) time.textContent = new Date(time.dateTime).toLocaleTimeString();
  const busy = live.querySelector("[data-busy]") !== null;
  for (const button of document.querySelectorAll("button")) button.disabled = busy;
  const stop = document.getElementById("stop");
  stop.hidden = !busy;
  stop.querySelector("button").disabled = live.querySelector("[data-stopping]") !== null;
  for (const pre of live.querySelectorAll("details[open] pre")) pre.scrollTop = pre.scrollHeight;
  return busy;
}
async function refresh() {
  try {
    const token = document.querySelector("[name=_xsrf]").value;  // JupyterHub asks scripts for it when they read, too
    const reply = await fetch(live.dataset.from, {headers: {"X-XSRFToken": token}, redirect: "error"});
    if (!reply.ok) throw new Error(reply.status);
    const text = await reply.text();
    if (text !== shown) {
      const turned = new Set();
      for (const one of live.querySelectorAll("details"))
        if (one.open !== one.hasAttribute("data-open")) turned.add(one.id);
      live.innerHTML = shown = text;
      for (const one of live.querySelectorAll("details")) if (turned.has(one.id)) one.open = !one.open;
    }
    lost.hidden = true;
  } catch { lost.hidden = false; }
  setTimeout(refresh, dress() ? 1500 : 8000);
}
for (const form of document.querySelectorAll("form[data-confirm]"))
  form.addEventListener("submit", event => { if (!confirm(form.dataset.confirm)) event.preventDefault(); });
setTimeout(refresh, dress() ? 1500 : 8000);
