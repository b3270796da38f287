// Keeps the time that is left until something begins right, by the clock of the page and not of the machine.
const words = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: 'auto' });
const units = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
];

function tick() {
  for (const element of document.querySelectorAll('[data-countdown]')) {
    const left = Math.max(0, Number(element.dataset.countdown) - performance.now() / 1000);
    const [unit, length] = units.find(([, size]) => left >= size) ?? ['second', 1];
    element.textContent = words.format(Math.floor(left / length), unit);
  }
}

setInterval(tick, 1000);
