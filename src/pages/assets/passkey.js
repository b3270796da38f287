// Forms that send what a passkey gave (Web Authentication Level 3).
const toBytes = (text) =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (sign) =>
    sign.charCodeAt(0),
  );

const toText = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');

const descriptors = (list = []) => list.map((each) => ({ ...each, id: toBytes(each.id) }));

// Browsers from before 2025 have neither the parsers nor toJSON.
function creationOf(options) {
  const parser = PublicKeyCredential.parseCreationOptionsFromJSON;
  if (parser !== undefined) return parser.call(PublicKeyCredential, options);
  return {
    ...options,
    challenge: toBytes(options.challenge),
    user: { ...options.user, id: toBytes(options.user.id) },
    excludeCredentials: descriptors(options.excludeCredentials),
  };
}

function requestOf(options) {
  const parser = PublicKeyCredential.parseRequestOptionsFromJSON;
  if (parser !== undefined) return parser.call(PublicKeyCredential, options);
  return {
    ...options,
    challenge: toBytes(options.challenge),
    allowCredentials: descriptors(options.allowCredentials),
  };
}

function jsonOf(credential) {
  if (credential.toJSON !== undefined) return credential.toJSON();
  const { id, type, response } = credential;
  const sent = { transports: response.getTransports?.() ?? [] };
  for (const name of [
    'clientDataJSON',
    'attestationObject',
    'authenticatorData',
    'signature',
    'userHandle',
  ]) {
    if (response[name] instanceof ArrayBuffer) sent[name] = toText(response[name]);
  }
  return { id, rawId: id, type, response: sent };
}

async function answer(form) {
  const { passkey: purpose, question } = form.dataset;
  const csrfToken = form.elements._csrf.value;
  const asked = await fetch(question, {
    method: 'POST',
    headers: { accept: 'application/json', 'X-CSRF-Token': csrfToken },
    body: new URLSearchParams({ _csrf: csrfToken, purpose }),
  });
  if (!asked.ok) throw new Error(`${asked.status}`);
  const { publicKey, state } = await asked.json();
  const credential =
    publicKey.user === undefined
      ? await navigator.credentials.get({ publicKey: requestOf(publicKey) })
      : await navigator.credentials.create({ publicKey: creationOf(publicKey) });
  form.elements.passkey_state.value = state;
  form.elements.passkey_response.value = JSON.stringify(jsonOf(credential));
}

function problemOf(form, error) {
  if (error.name === 'NotAllowedError' || error.name === 'AbortError')
    return form.dataset.cancelled;
  if (error.name === 'InvalidStateError') return form.dataset.known;
  console.error(error);
  return form.dataset.failed;
}

async function complete(form) {
  const problem = form.querySelector('[role="alert"]');
  const [button] = form.getElementsByTagName('button');
  button.disabled = true;
  problem.textContent = '';
  try {
    await answer(form);
    form.submit();
  } catch (error) {
    problem.textContent = problemOf(form, error);
  }
  button.disabled = false;
}

const isSupported = window.PublicKeyCredential !== undefined && window.isSecureContext;
for (const form of document.querySelectorAll('form[data-passkey]')) {
  if (!isSupported) break;
  form.hidden = false;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void complete(form);
  });
}
for (const element of document.querySelectorAll('[data-without-passkeys]')) {
  element.hidden = isSupported;
}
