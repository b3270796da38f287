// Follows a starting server by server-sent events; without this file the page reloads itself.
const panel = document.querySelector('[data-progress-url]');
if (panel !== null) follow(panel);

function follow({ dataset }) {
  const bar = document.getElementById('progress');
  const log = document.getElementById('events');
  const shown = new Set(Array.from(log.children, (item) => item.textContent.trim()));
  const source = new EventSource(dataset.progressUrl);

  source.addEventListener('message', ({ data }) => {
    const event = JSON.parse(data);
    if (typeof event.progress === 'number') bar.value = event.progress;
    if (typeof event.message === 'string') show(event.message);
    if (event.ready === true || event.failed === true) source.close();
    if (event.ready === true) location.replace(dataset.readyUrl);
    // The server knows why it failed and shows it on this same page.
    if (event.failed === true) location.reload();
  });

  source.addEventListener('error', () => {
    if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 3000);
  });

  // A connection that is made again tells everything from the start.
  function show(message) {
    const text = message.trim();
    if (shown.has(text)) return;
    shown.add(text);
    const item = document.createElement('li');
    item.textContent = text;
    log.append(item);
  }
}
