// Finds what a name leads to as one types: a combobox with a listbox (ARIA Authoring Practices Guide).
const opener = document.getElementById('palette-opener');
const { hint, nothing } = opener.dataset;
const dialog = document.createElement('dialog');
dialog.className = 'panel palette';
dialog.ariaLabel = opener.ariaLabel;
dialog.setAttribute('closedby', 'any');
dialog.innerHTML = `<form><input class="input" name="search" type="search" role="combobox" aria-autocomplete="list"
  aria-controls="found" aria-expanded="false" maxlength="255" autocomplete="off" spellcheck="false"></form>
  <ul id="found" role="listbox" hidden></ul><p class="small soft" role="status"></p>`;
const [form, list, outcome] = dialog.children;
const field = form.elements.search;
form.action = opener.href;
field.placeholder = hint;
field.ariaLabel = hint;
list.ariaLabel = opener.ariaLabel;
opener.after(dialog);
const waitMs = 150;
let timer;
let request;

opener.addEventListener('click', open);
document.addEventListener('keydown', (event) => {
  const { key, target } = event;
  const isHeld = event.ctrlKey || event.metaKey;
  const isTyping = target.matches('input, textarea, select, [contenteditable]');
  if (isHeld ? key.toLowerCase() === 'k' : key === '/' && !isTyping) open(event);
});
field.addEventListener('input', () => {
  select(undefined);
  clearTimeout(timer);
  timer = setTimeout(find, waitMs);
});
field.addEventListener('keydown', (event) => {
  if (event.isComposing) return;
  const options = Array.from(list.children);
  const selected = options.find(({ ariaSelected }) => ariaSelected === 'true');
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === 'Enter' && selected !== undefined) {
    event.preventDefault();
    location.assign(selected.dataset.url);
  } else if (step !== undefined && options.length > 0) {
    event.preventDefault();
    const next = selected === undefined && step < 0 ? -1 : options.indexOf(selected) + step;
    select(options.at(next % options.length));
  }
});
list.addEventListener('click', ({ target }) => {
  const { url } = target.closest('li')?.dataset ?? {};
  if (url !== undefined) location.assign(url);
});

function open(event) {
  event.preventDefault();
  if (!dialog.open) dialog.showModal();
  field.select();
  void find();
}

// For other scripts of the page, too. Undefined where another search has begun, or the hub is away.
opener.searchFor = async (search) => {
  request?.abort();
  request = new AbortController();
  const { signal } = request;
  try {
    const response = await fetch(`${opener.href}?${new URLSearchParams({ search })}`, {
      headers: {
        accept: 'application/json',
        'x-csrf-token': document.querySelector('meta[name="csrf-token"]')?.content ?? '',
      },
      redirect: 'manual',
      signal,
    });
    return response.ok ? (await response.json()).results : undefined;
  } catch {
    return undefined;
  }
};

async function find() {
  const results = await opener.searchFor(field.value);
  // Else Enter leads to the page of the search.
  if (results !== undefined) show(results);
}

function show(results) {
  list.replaceChildren(...results.map(optionOf));
  list.hidden = results.length === 0;
  field.ariaExpanded = String(!list.hidden);
  outcome.textContent = list.hidden ? nothing : '';
  select(list.firstElementChild ?? undefined);
}

function optionOf({ title, kind, url }, index) {
  const option = document.createElement('li');
  option.id = `found-${index}`;
  option.role = 'option';
  option.dataset.url = url;
  const small = document.createElement('span');
  small.className = 'small soft';
  small.textContent = kind;
  option.append(title, ' ', small);
  return option;
}

function select(option) {
  for (const each of list.children) each.ariaSelected = String(each === option);
  if (option === undefined) field.removeAttribute('aria-activedescendant');
  else field.setAttribute('aria-activedescendant', option.id);
  option?.scrollIntoView({ block: 'nearest' });
}
