// Follows a starting server by server-sent events; without this file the page reloads itself.
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
      // Not an EventSource: that cannot send the token by which the hub knows its own pages.
      const response = await fetch(dataset.progressUrl, {
        headers: {
          accept: 'text/event-stream',
          'x-csrf-token': document.querySelector('meta[name="csrf-token"]')?.content ?? '',
        },
        cache: 'no-store',
      });
      if (!response.ok) throw new Error(`answered with ${response.status}`);
      let text = '';
      for await (const piece of pieces(response.body.pipeThrough(new TextDecoderStream()))) {
        const events = (text + piece).split('\n\n');
        text = events.pop();
        for (const event of events) if (event.startsWith('data:')) isOver = take(event.slice(5));
      }
    } catch {
      // The connection broke; the page says how things are.
    }
    if (!isOver) setTimeout(() => location.reload(), 3000);
  }

  function take(data) {
    const event = JSON.parse(data);
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

// Not every browser can iterate a stream.
async function* pieces(stream) {
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}
