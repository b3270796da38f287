// Follows the output of a service or server, where the page shows only the last lines.
import { events } from './server-sent-events.js';

const mostLines = 1000;
const shownLines = 200;
const panel = document.querySelector('[data-output-url]');
if (panel !== null) follow(panel.dataset.outputUrl, panel.dataset);

function follow(url, texts) {
  const [list, state, pause, search, download] = [
    'lines',
    'state',
    'pause',
    'search',
    'download',
  ].map((name) => document.getElementById(`output-${name}`));
  const box = list.parentElement;
  let lines = [];
  // What is drawn, and searched, of them.
  let drawn = [];
  // How many of them have what is searched.
  let matches;
  // They are those of a run that has ended, and stay until the next one writes something.
  let areFormer = false;
  // What has come while the person reads what is there.
  let unseen = 0;
  let isPaused = false;
  let problem = '';
  let isFollowing = false;
  let connection;
  let failures = 0;

  pause.addEventListener('click', () => {
    isPaused = !isPaused;
    pause.textContent = isPaused ? texts.resume : texts.pause;
    if (!isPaused) box.scrollTop = 0;
    show();
  });
  search.addEventListener('input', () => show(true));
  // Where the newest line is in sight, what comes is shown.
  box.addEventListener('scroll', () => unseen > 0 && show());
  document.addEventListener('selectionchange', () => unseen > 0 && show());
  document.addEventListener('visibilitychange', () => {
    // A page that no one sees holds no connection.
    if (document.visibilityState === 'hidden') connection?.abort();
    else void listen();
  });
  void listen();

  async function listen() {
    if (isFollowing || document.visibilityState === 'hidden') return;
    isFollowing = true;
    connection = new AbortController();
    try {
      let isFirst = true;
      const address = `${url}?follow&lines=${shownLines}&language=${document.documentElement.lang}`;
      for await (const event of events(address, connection.signal)) {
        take(event, isFirst);
        isFirst = false;
        failures = 0;
      }
      problem = texts.ended;
    } catch (error) {
      problem = reasonOf(error.status, texts);
    }
    isFollowing = false;
    if (connection.signal.aborted) return void listen();
    say();
    failures += 1;
    setTimeout(listen, Math.min(1000 * 2 ** failures, 30_000));
  }

  function take(event, isFirst) {
    areFormer ||= isFirst || event.restarted === true;
    const skipped = event.skipped === 1 ? texts.skippedOne : fill(texts.skipped, event.skipped);
    const added = [...(event.skipped > 0 ? [skipped] : []), ...event.lines];
    if (areFormer && added.length > 0) {
      lines = [];
      areFormer = false;
    }
    lines = [...lines, ...added].slice(-mostLines);
    for (const control of [pause, search, download]) control.hidden = lines.length === 0;
    problem = event.problem ?? '';
    unseen += isFirst ? 0 : event.lines.length;
    show();
  }

  function show(isAsked = false) {
    const isToBeHeld = isHeld();
    if (!isAsked && isToBeHeld) return say();
    if (!isToBeHeld) {
      unseen = 0;
      drawn = lines;
    }
    const wanted = search.value.toLowerCase();
    const found = drawn.filter((line) => line.toLowerCase().includes(wanted));
    list.textContent = found.join('\n');
    matches = wanted === '' ? undefined : found.length;
    say();
  }

  // Lines must not run away from who reads, searches or copies them.
  function isHeld() {
    const selection = document.getSelection();
    const isSelecting = selection?.isCollapsed === false && box.contains(selection.anchorNode);
    return isPaused || isSelecting || box.scrollTop < -8;
  }

  function say() {
    const text = [
      problem,
      matches === undefined ? '' : fill(texts.found, matches, drawn.length),
      unseen === 0 ? '' : fill(isPaused ? texts.below : texts.scroll, unseen),
      lines.length === 0 && problem === '' ? state.dataset.empty : '',
    ]
      .filter((part) => part !== '')
      .join(' ');
    if (state.textContent !== text) state.textContent = text;
  }
}

function reasonOf(status, texts) {
  if (status === 401 || status === 403 || status === 404) return texts.refused;
  if (status === 429) return texts.busy;
  return texts.silent;
}

function fill(text, ...values) {
  return text.replaceAll(/\{(\d)\}/g, (_, index) => values[index]);
}
