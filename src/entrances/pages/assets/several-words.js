// Completes each word of a field, where a list of suggestions by itself completes only the first.
for (const field of document.querySelectorAll('input[list="scopes"]')) {
  const options = [...field.list.options];
  const words = options.map((option) => option.value);
  field.addEventListener('input', () => {
    const before = field.value.slice(0, field.value.lastIndexOf(' ') + 1);
    for (const [index, option] of options.entries()) option.value = before + words[index];
  });
}
