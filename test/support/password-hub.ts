import { type BrowserAnswer, FakeBrowser } from './fake-browser.ts';
import {
  createTestHub,
  submitForm,
  type TestHub,
  type TestHubConfig,
  type TestHubOptions,
} from './test-hub.ts';

/** The password of everybody in a hub of `createPasswordHub`. */
export const testPassword = 'purple elephants dance';

/** The configuration of such a hub, for one that is to be reloaded with parts of it changed. */
export function passwordHubConfig(config: TestHubConfig = {}): TestHubConfig {
  return {
    PasswordAuthenticator: {},
    ...config,
    Hub: { authenticator_class: 'password', ...config.Hub },
    Authenticator: { allow_all: false, ...config.Authenticator },
  };
}

/** A hub whose people log in with a password of their own: an administrator `ada`, and others. */
export async function createPasswordHub(
  userNames: readonly string[] = ['ada', 'bob'],
  config: TestHubConfig = {},
  options: TestHubOptions = {},
): Promise<TestHub> {
  const hub = await createTestHub(passwordHubConfig(config), options);
  for (const name of userNames) {
    const { secret } = await inviteUser(hub, name, { isAdmin: name === 'ada' });
    await acceptInvitation(hub, secret, testPassword);
  }
  return hub;
}

/** Creates a user by the API when there is none, and makes a link to choose a password. */
export async function inviteUser(
  hub: TestHub,
  name: string,
  { isAdmin = false }: { readonly isAdmin?: boolean } = {},
): Promise<{ readonly url: string; readonly secret: string; readonly purpose: string }> {
  const path = `/users/${encodeURIComponent(name)}`;
  await hub.api(path, 'admin-service-token', { method: 'POST', body: '{}' });
  if (isAdmin) {
    const body = JSON.stringify({ admin: true });
    await hub.api(path, 'admin-service-token', { method: 'PATCH', body });
  }
  const answer = await hub.api(`${path}/invitation`, 'admin-service-token', { method: 'POST' });
  const { url, purpose } = (await answer.json()) as { url: string; purpose: string };
  return { url, purpose, secret: new URL(url).searchParams.get('secret') ?? '' };
}

/** Opens a link and chooses a password; the answer is that to the form. */
export async function acceptInvitation(
  hub: TestHub,
  secret: string,
  password: string,
  browser = new FakeBrowser(),
): Promise<BrowserAnswer> {
  const page = await browser.request(`${hub.url}hub/invitation?secret=${secret}`);
  return submitForm(browser, page, { new_password: password, repeat_password: password });
}
