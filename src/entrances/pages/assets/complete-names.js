// Completes names as one types by what the search of the page finds; a field of its own adds them to a list of names.
const opener = document.getElementById('palette-opener');
const waitMs = 150;

for (const field of document.querySelectorAll('[data-completes]')) {
  const { form, list } = field;
  const { completes, adds } = field.dataset;
  const offered = [...list.options].map(({ value, dataset }) => ({ name: value, ...dataset }));
  const names = form.elements[adds];
  let timer;

  // The kind of names, which another field may choose.
  const typeOf = () => form.elements[completes]?.value ?? completes;

  field.closest('.field').hidden = false;
  field.addEventListener('input', (event) => {
    clearTimeout(timer);
    // Typing is an insertion of text; what remains is a choice of the list.
    const isChosen = !event.inputType || event.inputType === 'insertReplacementText';
    if (isChosen && names !== undefined) add();
    else timer = setTimeout(find, waitMs);
  });
  field.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.isComposing || names === undefined || field.value === '')
      return;
    event.preventDefault();
    add();
  });

  async function find() {
    const found = await opener.searchFor(field.value);
    // Else names can be typed as they are.
    if (found !== undefined) show(found);
  }

  function show(found) {
    const type = typeOf();
    const defaults = found.flatMap(({ type, name }) =>
      type === 'user' ? { type: 'server', name: `${name}/` } : [],
    );
    const all = [...offered, ...found, ...defaults].filter((each) => each.type === type);
    const values = new Set(all.map(({ name }) => name));
    list.replaceChildren(...Array.from(values, (name) => new Option('', name)));
  }

  function add() {
    const lines = names.value.split('\n').filter((line) => line.trim() !== '');
    names.value = [...new Set([...lines, field.value])].join('\n');
    field.value = '';
    list.replaceChildren();
  }
}
