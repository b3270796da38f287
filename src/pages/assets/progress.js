// Follows a starting server by server-sent events; without this file the page reloads itself.
import { events } from './server-sent-events.js';

const panel = document.querySelector('[data-progress-url]');
if (panel !== null) follow(panel);

function follow({ dataset }) {
  const bar = document.getElementById('progress');
  const log = document.getElementById('events');
  const shown = new Set(Array.from(log.children, (item) => item.textContent.trim()));
  void listen();

  async function listen() {
    let isOver = false;
    try {
      for await (const event of events(dataset.progressUrl)) isOver = take(event);
    } catch {
      // The connection broke; the page says how things are.
    }
    if (!isOver) setTimeout(() => location.reload(), 3000);
  }

  function take(event) {
    if (typeof event.progress === 'number') bar.value = event.progress;
    if (typeof event.message === 'string') show(event.message, event.phase);
    if (event.ready === true) location.replace(dataset.readyUrl);
    // The server knows why it failed and shows it on this same page.
    if (event.failed === true) location.reload();
    return event.ready === true || event.failed === true;
  }

  // A page that is loaded again shows what was told, and the stream tells everything from the start.
  function show(message, phase) {
    const text = message.trim();
    if (shown.has(text)) return;
    // The place in a queue changes for hours, and what is pulled of an image each second: one line tells it.
    const isRepeated = phase === 'pending' || phase === 'pulling';
    const place = isRepeated ? log.querySelector(`[data-phase="${phase}"]`) : null;
    if (place === null) shown.add(text);
    const item = place ?? document.createElement('li');
    if (isRepeated) item.dataset.phase = phase;
    item.textContent = text;
    log.append(item);
  }
}
