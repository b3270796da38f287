import { type Browser, type CDPSession, chromium, type Page } from 'playwright-core';
import type { FakeBrowser } from './fake-browser.ts';
import { pathOf, requires } from './requires.ts';

/** Whether Chromium is installed; see requires. */
export function hasChromium(): boolean {
  return requires('chromium');
}

/** What only a hang can reach, on a busy machine too. */
const hangMs = 240_000;

/** Starts the system's Chromium as a shell without a window and without traffic of its own. */
export async function startChromium(
  options: {
    readonly acceptsEveryCertificate?: boolean;
    /** Ports of this machine at which hosts are found. */
    readonly hosts?: Readonly<Record<string, number>>;
  } = {},
): Promise<Browser> {
  const rules = Object.entries(options.hosts ?? {})
    .map(([host, port]) => `MAP ${host} 127.0.0.1:${port}`)
    .join(',');
  const browser = await chromium.launch({
    executablePath: pathOf('chromium'),
    args: [
      '--no-sandbox',
      '--disable-quic',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
      ...(rules === '' ? [] : [`--host-resolver-rules=${rules}`]),
      ...(options.acceptsEveryCertificate === true ? ['--ignore-certificate-errors'] : []),
    ],
  });
  browser.on('context', (context) => {
    context.setDefaultTimeout(hangMs);
    context.on('page', bearNetworkChanges);
  });
  return browser;
}

/** Chromium gives up what it loads when a network of the machine comes or goes, as those of containers do. */
function bearNetworkChanges(page: Page): void {
  const go = page.goto.bind(page);
  page.goto = (...where) =>
    go(...where).catch((error: unknown) => {
      if (!String(error).includes('net::ERR_NETWORK_CHANGED')) throw error;
      return page.goto(...where);
    });
}

/** Opens a page in a browser profile of its own; what its pages complain about is collected. */
export async function openProfile(
  browser: Browser,
  options: { readonly locale?: string } = {},
): Promise<{ readonly page: Page; readonly complaints: string[] }> {
  const page = await (await browser.newContext(options)).newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    // Refused logins are part of the tests; everything else, such as a violated policy, is not.
    const isStatus = message.text().startsWith('Failed to load resource');
    if (message.type() === 'error' && !isStatus) complaints.push(message.text());
  });
  return { page, complaints };
}

/** The cookies of a login at 127.0.0.1, as a context of Chromium takes them. */
export function cookiesOf(visitor: FakeBrowser) {
  return visitor.cookieNames().map((name) => ({
    name,
    value: visitor.cookie(name)?.value ?? '',
    domain: '127.0.0.1',
    path: visitor.cookie(name)?.path ?? '/',
    httpOnly: true,
    sameSite: 'Lax' as const,
  }));
}

/** Gives a page an authenticator of its own, on which somebody puts a finger whenever it asks. */
export async function addVirtualAuthenticator(
  page: Page,
): Promise<{ readonly devTools: CDPSession; readonly authenticatorId: string }> {
  const devTools = await page.context().newCDPSession(page);
  await devTools.send('WebAuthn.enable');
  const { authenticatorId } = await devTools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
    },
  });
  return { devTools, authenticatorId };
}
