// Sends chosen files one after another, each as it is: no form encoding, any size.
async function send(form, output) {
  for (const file of form.elements.file.files) {
    output.textContent = `Sending ${file.name} …`;
    const url = `${form.dataset.upload.replace(/\/$/, '')}/${encodeURIComponent(file.name)}`;
    const answer = await fetch(url, { method: 'PUT', body: file }).catch(() => undefined);
    if (!answer?.ok) {
      output.textContent = `${file.name} could not be sent.`;
      return;
    }
  }
  location.reload();
}

for (const form of document.querySelectorAll('form[data-upload]')) {
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void send(form, form.querySelector('output'));
  });
}
