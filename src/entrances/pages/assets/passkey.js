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

// Without options the browser asks at once.
async function answer(form, options = {}) {
  const { passkey: purpose, question } = form.dataset;
  const csrfToken = form.elements._csrf.value;
  const asked = await fetch(question, {
    method: 'POST',
    headers: { accept: 'application/json', 'X-CSRF-Token': csrfToken },
    body: new URLSearchParams({ _csrf: csrfToken, purpose }),
    signal: options.signal,
  });
  if (!asked.ok) throw new Error(`${asked.status}`);
  const { publicKey, state } = await asked.json();
  const credential =
    publicKey.user === undefined
      ? await navigator.credentials.get({ publicKey: requestOf(publicKey), ...options })
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

// Less than a question lives.
const askAgainMs = 4 * 60_000;

/**
 * Offers passkeys where the browser fills in user names, and says nothing of it: who takes none types, or uses the
 * button. Returns how to offer them again after a form was sent.
 */
function offerToFill(form) {
  let offer = new AbortController();
  let askedAt = 0;

  async function begin() {
    if (!(await PublicKeyCredential.isConditionalMediationAvailable?.())) return;
    offer.abort();
    const own = new AbortController();
    offer = own;
    askedAt = Date.now();
    try {
      await answer(form, { mediation: 'conditional', signal: own.signal });
      if (!own.signal.aborted) form.submit();
    } catch {
      own.abort();
    }
  }

  function renew() {
    const isOld = Date.now() - askedAt >= askAgainMs;
    if (isOld && !document.hidden && !offer.signal.aborted) void begin();
  }

  setInterval(renew, askAgainMs);
  document.addEventListener('visibilitychange', renew);
  // The browser asks for one passkey at a time.
  document.addEventListener('submit', () => offer.abort());
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) void begin();
  });
  void begin();
  return begin;
}

async function complete(form, offerAgain) {
  const problem = form.querySelector('[role="alert"]');
  const [button] = form.getElementsByTagName('button');
  button.disabled = true;
  problem.textContent = '';
  try {
    await answer(form);
    form.submit();
  } catch (error) {
    problem.textContent = problemOf(form, error);
    void offerAgain?.();
  }
  button.disabled = false;
}

const isSupported = window.PublicKeyCredential !== undefined && window.isSecureContext;
for (const form of document.querySelectorAll('form[data-passkey]')) {
  if (!isSupported) break;
  form.hidden = false;
  const offerAgain = form.dataset.passkey === 'login' ? offerToFill(form) : undefined;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void complete(form, offerAgain);
  });
}
for (const element of document.querySelectorAll('[data-without-passkeys]')) {
  element.hidden = isSupported;
}
