// Keeps marked regions of a page current: fetches the page again and exchanges what has changed.
const regions = () => Array.from(document.querySelectorAll('[data-live-seconds][id]'));
const seconds = Math.min(...regions().map((region) => Number(region.dataset.liveSeconds)));
// A connection that broke while the computer slept may never say so.
const mostWaitMs = 30_000;
let timer;
let isAsking = false;
let failures = 0;
// The address leads elsewhere now, mostly to the login, and what was typed would be lost on the way.
let isHeld = false;
if (Number.isFinite(seconds) && seconds >= 1) {
  schedule();
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') void refresh();
  });
}

function schedule() {
  timer = setTimeout(refresh, seconds * 1000);
}

async function refresh() {
  if (isAsking) return;
  isAsking = true;
  clearTimeout(timer);
  try {
    if (document.visibilityState === 'visible') {
      if (!(await exchange())) return;
      failures = 0;
      say();
    }
  } catch {
    // The next round asks again. Once may be a new start of the hub.
    failures += 1;
    say();
  } finally {
    isAsking = false;
  }
  schedule();
}

function say() {
  const place = document.getElementById('not-live');
  const silent = failures < 2 ? '' : place?.dataset.silent;
  const told = isHeld ? place?.dataset.held : silent;
  if (place !== null && place.textContent !== told) place.textContent = told;
}

async function read() {
  const request = new AbortController();
  const giveUp = setTimeout(() => request.abort(), mostWaitMs);
  try {
    const response = await fetch(location.href, {
      headers: {
        accept: 'text/html',
        'x-csrf-token': document.querySelector('meta[name="csrf-token"]')?.content ?? '',
      },
      cache: 'no-store',
      // The login may lead on to a provider, where a script must not follow.
      redirect: 'manual',
      signal: request.signal,
    });
    return { response, markup: await response.text() };
  } finally {
    clearTimeout(giveUp);
  }
}

// Whether to go on. A status alone says nothing: a page that waits may itself be an error page.
async function exchange() {
  const { response, markup } = await read();
  const isRedirect = response.type === 'opaqueredirect';
  isHeld = isRedirect && hasInput();
  if (isHeld) return true;
  const fresh = new DOMParser().parseFromString(markup, 'text/html');
  const before = shownStates();
  const pairs = regions().map((region) => [region, fresh.getElementById(region.id)]);
  if (isRedirect || pairs.every(([, replacement]) => replacement === null)) {
    if (response.status >= 500) throw new Error(`answered with ${response.status}`);
    location.reload();
    return false;
  }
  for (const [region, replacement] of pairs) {
    if (replacement === null || isInUse(region)) continue;
    const next = document.importNode(replacement, true);
    keepOpen(region, next);
    if (region.outerHTML === next.outerHTML) continue;
    const focused = placeOfFocus(region);
    keepTicked(region, next);
    const scrolled = Array.from(region.querySelectorAll('.output'), ({ scrollTop }) => scrollTop);
    region.replaceWith(next);
    for (const [index, output] of next.querySelectorAll('.output').entries()) {
      output.scrollTop = scrolled[index] ?? 0;
    }
    focused?.(next);
  }
  speak(before);
  return true;
}

// The state of each thing, by what it is called.
function shownStates() {
  const rows = document.querySelectorAll('[data-live-seconds] [data-key]');
  return new Map(
    Array.from(rows, (row) => [
      row.dataset.label ?? row.dataset.key,
      row.querySelector('.status')?.textContent,
    ]),
  );
}

// Says once what has changed; many changes at once would be read for minutes.
function speak(before) {
  const changed = Array.from(shownStates()).filter(
    ([name, state]) => state !== undefined && before.has(name) && before.get(name) !== state,
  );
  const place = document.getElementById('spoken');
  if (place !== null)
    place.textContent = changed
      .slice(0, 5)
      .map((each) => each.join(': '))
      .join('. ');
}

function hasInput() {
  return Array.from(document.querySelectorAll('form :is(input, textarea)')).some((field) =>
    field.matches('[type="checkbox"], [type="radio"]')
      ? field.checked !== field.defaultChecked
      : field.value !== field.defaultValue,
  );
}

// What is being typed or selected would be lost.
function isInUse(region) {
  const field = document.activeElement;
  const isTyping = field?.matches('textarea, select, input:not([type="checkbox"])') ?? false;
  const selection = getSelection();
  return (
    (isTyping && region.contains(field)) ||
    (selection !== null && !selection.isCollapsed && region.contains(selection.anchorNode))
  );
}

// What the person has unfolded or folded stays as it is.
function keepOpen(region, next) {
  const before = region.querySelectorAll('details');
  for (const [index, details] of next.querySelectorAll('details').entries()) {
    if (before[index] !== undefined) details.open = before[index].open;
  }
}

function keepTicked(region, next) {
  const ticked = new Set(Array.from(region.querySelectorAll('input:checked'), keyOf));
  for (const box of next.querySelectorAll('input[type="checkbox"]')) {
    box.checked = ticked.has(keyOf(box));
  }
}

const focusable = 'a[href], button, summary, input:not([type="hidden"]), [tabindex]';

// How to give the focus back: to the same thing, else to what stands in its place in the same row.
function placeOfFocus(region) {
  const element = document.activeElement;
  if (element === null || !region.contains(element)) return undefined;
  const key = keyOf(element);
  const row = rowOf(element);
  const rows = (within) => Array.from(within.querySelectorAll('[data-key]'));
  const inRow = row === null ? -1 : Array.from(row.querySelectorAll(focusable)).indexOf(element);
  const nth = Array.from(region.querySelectorAll(focusable)).filter(
    (other) => keyOf(other) === key,
  );
  const index = nth.indexOf(element);
  return (next) => {
    const same = Array.from(next.querySelectorAll(focusable)).filter(
      (other) => keyOf(other) === key,
    );
    const sameRow = rows(next).find(({ dataset }) => dataset.key === row?.dataset.key);
    const found = same[index] ?? sameRow?.querySelectorAll(focusable)[inRow];
    found?.focus({ preventScroll: true });
  };
}

const rowOf = (element) => element.closest('[data-key]');

function keyOf(element) {
  const name = ['id', 'href', 'name', 'value', 'aria-label'].map((each) =>
    element.getAttribute(each),
  );
  return [element.localName, rowOf(element)?.dataset.key, element.form?.action, ...name].join(' ');
}
