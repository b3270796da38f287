import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createComposeFolder, hasCompose, programFolders } from '../support/compose.ts';
import { useDocker } from '../support/docker-engine.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { projectDirectory } from '../support/services.ts';
import { submitForm, submitLogin, until } from '../support/test-hub.ts';

const page = readFileSync(join(projectDirectory, 'docs/how-to/compose.md'), 'utf8');
const [makeSecrets, start, printLink, upgrade] = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(
  ([, text = '']) => text,
);
const password = 'purple elephants dance';
const hubs = ['hub-a', 'hub-b'] as const;
const gateways = ['gateway-a', 'gateway-b'] as const;

describe.runIf(hasCompose())('two hubs and two gateways with docker-compose', () => {
  const engine = useDocker();
  const { docker } = engine;

  /** Containers take their time on a machine that is busy. */
  const eventually = (...[condition, what]: Parameters<typeof until>) =>
    until(condition, what)
      .catch(() => until(condition, what))
      .catch(() => until(condition, what));

  /** A container of the compose file, or of a user. */
  async function containerOf(label: string) {
    const [found] = await docker.listContainers({ all: true, filters: { label: [label] } });
    return found === undefined ? undefined : docker.getContainer(found.Id);
  }
  const serviceContainer = (name: string) => containerOf(`com.docker.compose.service=${name}`);

  async function isHealthy(name: string): Promise<boolean> {
    const container = await serviceContainer(name);
    const { State } = (await container?.inspect()) ?? {};
    return State?.Health?.Status === 'healthy';
  }

  test('are set up, used, killed and upgraded as the page says', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'hub-compose-'));
    chmodSync(directory, 0o755);
    const url = `http://127.0.0.1:${await freePort()}/`;
    const { host } = new URL(url);
    const mounts = programFolders.map((source) => ({ source, target: source, read_only: true }));
    const folder = await createComposeFolder(engine, {
      directory,
      file: 'compose.several-hubs.yaml',
      services: { ofHub: [...hubs, ...gateways], others: ['balancer', 'database', 'redis'] },
      adapt: (text) =>
        text
          // Another run of this test may have the range of the page.
          .replaceAll('172.28.5.', `172.28.${process.pid % 250}.`)
          .replace('127.0.0.1:8000:8000', `${host}:8000`)
          .replace('http://127.0.0.1:8000/', url)
          .replace('"volumes": [', `"volumes": [${JSON.stringify(mounts).slice(1, -1)}, `),
    });
    const socket = new URL(engine.host).pathname;
    const run = (commands = '') => folder.run(commands.replaceAll('/var/run/docker.sock', socket));

    try {
      await run(makeSecrets);
      await run(start);
      await eventually(
        async () => (await isHealthy('hub-a')) && isHealthy('hub-b'),
        'both are healthy',
      );
      const link = (await run(printLink)).trim();
      expect(link.startsWith(url)).toBe(true);
      const browser = new FakeBrowser();
      let form = await browser.open(link);
      await eventually(async () => {
        form = await browser.open(link);
        return form.status === 200;
      }, 'a gateway answers');
      const made = await submitForm(browser, form, {
        name: 'ada',
        new_password: password,
        repeat_password: password,
      });
      expect([made.status, made.headers.location]).toEqual([303, '/hub/home']);

      const home = await browser.open(url);
      const [button = ''] = /<form[^>]*action="[^"]*spawn[\s\S]*?<\/form>/.exec(home.body) ?? [];
      expect((await submitForm(browser, { ...home, body: button }, {})).status).toBe(303);
      const shows = async (visitor = browser) => {
        const answer = await visitor.open(`${url}user/ada/tree`).catch(() => undefined);
        return answer?.status === 200 && answer.body.includes('Jupyter');
      };
      await eventually(shows, 'ada sees Jupyter');
      const server = await containerOf('hub.user=ada');
      const { NetworkSettings } = (await server?.inspect()) ?? {};
      expect(Object.keys(NetworkSettings?.Networks ?? {})).toEqual(['hub-servers']);

      for (const name of ['hub-a', 'gateway-a']) {
        await (await serviceContainer(name))?.kill();
        await eventually(shows, `ada sees Jupyter without ${name}`);
        const other = new FakeBrowser();
        await eventually(async () => {
          const answer = await submitLogin(other, url, 'ada', password).catch(() => undefined);
          return answer?.status === 302 && shows(other);
        }, `ada logs in without ${name}`);
        await run(start);
        if (name.startsWith('hub')) await eventually(() => isHealthy(name), `${name} is back`);
      }

      await run(upgrade);
      await eventually(() => isHealthy('hub-a'), 'the new hub-a is healthy');
      await eventually(
        async () => /hub-a.*\n.*hub-b/.test(await run(upgrade?.trim().split('\n').at(-1))),
        'the status shows both',
      );
      expect(await shows()).toBe(true);
    } finally {
      for (const { Id } of await docker.listContainers({ all: true })) {
        await docker.getContainer(Id).remove({ force: true, v: true });
      }
      rmSync(directory, { recursive: true, force: true });
    }
  });
});
