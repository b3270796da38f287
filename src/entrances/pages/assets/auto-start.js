// Presses the button that starts a server after a while; without this file the person does.
const control = document.querySelector('[data-start-seconds]');
if (control !== null) {
  setTimeout(() => {
    if (control instanceof HTMLFormElement) control.requestSubmit();
    else location.assign(control.href);
  }, Number(control.dataset.startSeconds) * 1000);
}
