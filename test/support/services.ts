import { join } from 'node:path';
import type { BrowserAnswer, FakeBrowser } from './fake-browser.ts';
import { freePort } from './free-port.ts';
import { nodeCommand } from './node-command.ts';
import { submitForm, type TestHub, until } from './test-hub.ts';

/** Folder of the project. */
export const projectDirectory = join(import.meta.dirname, '..', '..');

/** Everybody keeps their own rights and may open every service. */
export const usersOpenServices = [{ name: 'user', scopes: ['self', 'access:services'] }];

/** An entry of `Hub.services` that runs a program of the project on a free port. */
export async function managedService(
  name: string,
  program: string,
  fields: Readonly<Record<string, unknown>> = {},
) {
  return {
    name,
    url: `http://127.0.0.1:${await freePort()}`,
    command: nodeCommand(join(projectDirectory, program)),
    ...fields,
  };
}

/** What the API tells an administrator about a service. */
export async function serviceModel(hub: TestHub, name: string): Promise<Record<string, unknown>> {
  const answer = await hub.api(`/services/${name}`, 'admin-service-token');
  return (await answer.json()) as Record<string, unknown>;
}

/** Resolves when a service is in a state such as `ready`. */
export async function untilState(hub: TestHub, name: string, ...states: string[]): Promise<void> {
  await until(
    async () => {
      const { state } = await serviceModel(hub, name);
      return states.includes(String(state));
    },
    `the service ${name} is ${states.join(' or ')}`,
  );
}

/** Opens a page of a service and says Allow when asked; returns the page. */
export async function openWithConsent(
  browser: FakeBrowser,
  url: string,
  decision: 'allow' | 'deny' = 'allow',
): Promise<BrowserAnswer> {
  const page = await browser.open(url);
  if (!page.body.includes('name="decision"')) return page;
  const decided = await submitForm(browser, page, { decision });
  return browser.open(new URL(decided.headers.location ?? '', page.url).href);
}

/** What the program `prints-environment` tells about itself, asked through the gateway. */
export async function environmentOf(
  hub: Pick<TestHub, 'url'>,
  name: string,
): Promise<{ environment: Record<string, string>; cwd: string; userId: number; pid: number }> {
  const answer = await fetch(`${hub.url}services/${name}/`);
  return (await answer.json()) as Awaited<ReturnType<typeof environmentOf>>;
}

/** The program that shows what a service is given, open to everybody. */
export function printsEnvironment(name: string, fields: Readonly<Record<string, unknown>> = {}) {
  const program = 'fixtures/apps/prints-environment.cjs';
  return managedService(name, program, { access: 'public', ...fields });
}
