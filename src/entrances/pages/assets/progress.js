// Follows a starting server by server-sent events; without this file the page reloads itself.
import { events } from './server-sent-events.js';

const panel = document.querySelector('[data-progress-url]');
if (panel !== null) follow(panel);

function follow({ dataset }) {
  const language = document.documentElement.lang;
  const bar = document.getElementById('progress');
  const log = document.getElementById('events');
  const time = countOn(bar);
  const shown = new Set(Array.from(log.children, (item) => item.textContent.trim()));
  // Cancelled, the start fails: to load the page again would break off what the button does.
  let isLeaving = false;
  document.addEventListener('submit', () => {
    isLeaving = true;
  });
  void listen();
  void showOutput(document.getElementById('start-output'));

  async function listen() {
    let isOver = false;
    try {
      for await (const event of events(`${dataset.progressUrl}?language=${language}`))
        isOver = take(event);
    } catch {
      // The connection broke; the page says how things are.
    }
    if (!isOver) setTimeout(() => isLeaving || location.reload(), 3000);
  }

  function take(event) {
    time.take(event);
    if (typeof event.message === 'string') show(event.message, event.phase);
    if (event.ready === true) location.replace(dataset.readyUrl);
    // The server knows why it failed and shows it on this same page.
    if (event.failed === true && !isLeaving) location.reload();
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

const shownLines = 8;

// The last lines that the starting server writes.
async function showOutput(panel) {
  if (panel === null) return;
  const list = panel.querySelector('pre');
  let lines = [];
  for (;;) {
    try {
      let isFirst = true;
      for await (const event of events(`${panel.dataset.outputUrl}?follow&lines=${shownLines}`)) {
        if (isFirst || event.restarted === true) lines = [];
        isFirst = false;
        lines = [...lines, ...event.lines].slice(-shownLines);
        list.textContent = lines.join('\n');
        panel.hidden = lines.length === 0;
      }
    } catch (error) {
      // The page does without, where it may not.
      if (error.status !== undefined && error.status < 500) return;
    }
    await new Promise((resolve) => setTimeout(resolve, 3000));
  }
}

// Counts the time on, and moves the bar between two messages: quickly at first, and never as far as the next one.
function countOn(bar) {
  const line = document.getElementById('time');
  const elapsed = document.getElementById('elapsed');
  const openedAt = performance.now() - Number(line?.dataset.elapsedMs ?? 0);
  const halfMs = (Number(line?.dataset.usualMs) || 20_000) / 2;
  let isQueued = line?.dataset.queued !== undefined;
  let from = bar.value;
  let since = performance.now();
  setInterval(() => {
    const now = performance.now();
    if (elapsed !== null) elapsed.textContent = clock(now - openedAt);
    const next = from < 60 ? 58 : 97;
    if (isQueued || next <= from) return;
    const value = Math.round(from + (next - from) * (1 - Math.exp((since - now) / halfMs)));
    if (value !== bar.value) bar.value = value;
  }, 1000);

  return {
    take({ progress, phase }) {
      if (phase !== undefined) isQueued = phase === 'pending';
      const after = document.getElementById('after-queue');
      if (isQueued && after !== null) after.hidden = false;
      if (typeof progress !== 'number' || progress <= from) return;
      from = progress;
      since = performance.now();
      bar.value = Math.max(bar.value, progress);
    },
  };
}

// As the page writes it.
function clock(ms) {
  const seconds = Math.floor(ms / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}
