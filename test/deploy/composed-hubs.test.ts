import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createComposeFolder, hasCompose, programFolders } from '../support/compose.ts';
import { useDocker } from '../support/docker-engine.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { hasPebble, issuedByPebble, startPebble, visit } from '../support/pebble.ts';
import { projectDirectory } from '../support/services.ts';
import { submitForm, submitLogin, until } from '../support/test-hub.ts';

const pageOf = (name: string) => readFileSync(join(projectDirectory, 'docs/how-to', name), 'utf8');
const page = pageOf('compose.md');
const [makeSecrets, start, printLink, upgrade] = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(
  ([, text = '']) => text,
);
const password = 'purple elephants dance';
const hubs = ['hub-a', 'hub-b'] as const;
const gateways = ['gateway-a', 'gateway-b'] as const;
/** Another run of these tests may have the range of the page. */
const network = `172.28.${process.pid % 250}.`;

describe.runIf(hasCompose())('with docker-compose', () => {
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

  test('two hubs and two gateways are set up, used, killed and upgraded as the page says', async () => {
    const url = `http://127.0.0.1:${await freePort()}/`;
    const { host } = new URL(url);
    const mounts = programFolders.map((source) => ({ source, target: source, read_only: true }));
    await using folder = await createComposeFolder(engine, {
      files: ['compose.several-hubs.yaml'],
      config: 'compose.several-hubs.config.json',
      services: { ofHub: [...hubs, ...gateways], others: ['balancer', 'database', 'redis'] },
      adapt: (text) =>
        text
          .replaceAll('172.28.5.', network)
          .replace('127.0.0.1:8000:8000', `${host}:8000`)
          .replace('http://127.0.0.1:8000/', url)
          .replace('"volumes": [', `"volumes": [${JSON.stringify(mounts).slice(1, -1)}, `),
    });
    const run = (commands = '') => folder.run(commands);

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
  });

  test.runIf(hasPebble())('https in two settings orders a certificate, and keeps it', async () => {
    const behindTls = pageOf('run-behind-tls.md');
    const [, start = ''] = /`(docker compose .*compose\.https\.yaml .*)`/.exec(behindTls) ?? [];
    const settings = [...behindTls.matchAll(/`(HUB_\w+=\S+)`/g)].map(([, line]) => line);
    const [makeSecrets = ''] = /^cat > .*?^END$/ms.exec(pageOf('docker.md')) ?? [];
    const [, name = ''] = /HUB_HOST=(\S+)/.exec(settings.join('\n')) ?? [];

    const authority = 'authority.test';
    await using pebble = await startPebble({ address: '0.0.0.0', names: [authority] });
    const { ports } = pebble;
    const directory = `https://${authority}:${pebble.port}/dir`;
    const plain = `127.0.0.1:${await freePort()}:8000`;
    await using folder = await createComposeFolder(engine, {
      files: ['compose.yaml', 'compose.https.yaml'],
      config: 'compose.https.hub.config.json',
      services: { ofHub: ['hub'], others: ['database', 'redis'] },
      adapt: (text) =>
        text
          .replace('127.0.0.1:8000:8000', plain)
          .replace('"443:8000"', `"${ports.tls}:8000"`)
          .replace('"80:8001"', `"${ports.http}:8001"`)
          .replace('"accept_terms": true', `$&, "directory": ${JSON.stringify(directory)}`),
      override: {
        services: {
          hub: {
            environment: { NODE_EXTRA_CA_CERTS: '/authority.pem' },
            volumes: [`${pebble.certificateFile}:/authority.pem:ro`],
            extra_hosts: [`${authority}:${network}1`],
          },
        },
        networks: { default: { ipam: { config: [{ subnet: `${network}0/24` }] } } },
      },
    });
    await folder.run([makeSecrets, `cat >> deploy/.env <<END`, ...settings, 'END'].join('\n'));
    await folder.run(start);

    const ca = await pebble.root();
    const seen = async () => await visit(name, ports.tls, ca).catch(() => undefined);
    await eventually(async () => (await seen())?.status === 200, 'https with a certificate');
    const first = await seen();
    expect(first).toMatchObject(issuedByPebble(name));
    expect(await visit(name, ports.http)).toMatchObject({
      status: 308,
      location: `https://${name}/hub/login`,
    });

    // Now it can only come from the database.
    await pebble.end();
    await folder.run(start.replace(/up .*/, 'restart hub'));
    await eventually(async () => (await seen())?.status === 200, 'https after a restart');
    expect(await seen()).toEqual(first);
  });
});
