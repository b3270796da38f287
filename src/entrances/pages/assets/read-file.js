// Puts a chosen file into the field that would be typed in, as text of UTF-8, UTF-16 or, else, Windows-1252.
for (const field of document.querySelectorAll('[data-reads-into]')) {
  const target = document.getElementById(field.dataset.readsInto);
  const input = field.querySelector('input');
  field.hidden = false;
  input.addEventListener('change', () => {
    void input.files[0]?.arrayBuffer().then((bytes) => {
      target.value = decode(new Uint8Array(bytes));
    });
  });
}

function decode(bytes) {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder('utf-16le').decode(bytes);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
}
