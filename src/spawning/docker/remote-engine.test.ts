import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createSpawnRequest } from '../../../test/contract/spawn-request.ts';
import {
  busyImage,
  hasDocker,
  importImage,
  startDocker,
  type TestEngine,
} from '../../../test/support/docker-engine.ts';
import {
  hasRegistry,
  type Registry,
  startRegistry,
} from '../../../test/support/docker-registry.ts';
import { freePort } from '../../../test/support/free-port.ts';
import { pathOf, requires } from '../../../test/support/requires.ts';
import { until } from '../../../test/support/test-hub.ts';
import { createTestSpawner } from '../../../test/support/test-spawner.ts';
import type { SpawnProgress, SpawnRequest } from '../../plugin/host/spawn-request.ts';
import type { Spawner } from '../../plugin/host/spawner.ts';
import { dockerPlugin } from './docker-plugin.ts';

const spawners: Spawner[] = [];

async function create(options: object): Promise<Spawner> {
  const { spawner } = await createTestSpawner(dockerPlugin, options);
  spawners.push(spawner);
  return spawner;
}

/** What `hub doctor` is told, by what was looked at. */
async function examine(
  spawner: Spawner,
  profiles: readonly (readonly [string | undefined, unknown])[] = [[undefined, {}]],
): Promise<Readonly<Record<string, string>>> {
  const signal = AbortSignal.timeout(30_000);
  const found = (await spawner.examine?.({ signal, profileOptions: new Map(profiles) })) ?? [];
  return Object.fromEntries(
    found.map(({ check, state, detail, fix }) => [
      check,
      `${state} ${detail}${fix === undefined ? '' : ` (${fix})`}`,
    ]),
  );
}

const request = (changed: Partial<SpawnRequest> = {}) =>
  createSpawnRequest({ command: ['sh', '-c', 'trap exit TERM; sleep 600 & wait'], ...changed });

afterEach(async () => {
  for (const spawner of spawners.splice(0)) await spawner[Symbol.asyncDispose]?.();
});

/** Folders of images. */
const directory = mkdtempSync(join(tmpdir(), 'hub-images-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe.runIf(hasDocker() && hasRegistry())('an image in a registry with passwords', () => {
  let engine: TestEngine;
  let registry: Registry;
  let image: string;

  beforeAll(async () => {
    [engine, registry] = [await startDocker(), await startRegistry()];
    image = `${registry.host}/lab/busy:1`;
    const root = join(directory, 'busy');
    mkdirSync(join(root, 'bin'), { recursive: true });
    mkdirSync(join(root, 'tmp'));
    for (const name of ['sh', 'sleep']) cpSync(pathOf('busybox'), join(root, 'bin', name));
    writeFileSync(join(root, 'large'), randomBytes(8e6));
    await importImage(engine.docker, root, 'busy:2', ['USER 1000', 'ENV PATH=/bin']);
    const authconfig = {
      username: registry.username,
      password: registry.password,
      serveraddress: registry.host,
    };
    const imported = engine.docker.getImage('busy:2');
    await imported.tag({ repo: `${registry.host}/lab/busy`, tag: '1' });
    const pushed = await engine.docker.getImage(image).push({ authconfig });
    await new Promise<void>((resolve, reject) => {
      engine.docker.modem.followProgress(pushed, (error) => (error ? reject(error) : resolve()));
    });
    await registry.putForeign('lab/busy', '1');
    await imported.remove();
    await engine.docker.getImage(image).remove();
  });

  afterAll(async () => {
    await engine?.[Symbol.asyncDispose]();
    await registry?.[Symbol.asyncDispose]();
  });

  const withPassword = (changed: object = {}) => ({
    host: engine.host,
    image,
    network: 'host',
    registry: registry.host,
    registry_username: registry.username,
    registry_password: registry.password,
    ...changed,
  });

  test('is refused without a password and with a wrong one, and no password is shown', async () => {
    const sentence = `The image ${image} is private, or there is none of that name: its registry does not give it without other credentials.`;
    const without = await create({ host: engine.host, image, network: 'host' });
    await expect(without.start(request())).rejects.toThrow(sentence);
    const wrong = await create(withPassword({ registry_password: 'of-another-registry' }));
    const failure = await wrong.start(request()).catch((error: Error) => error);
    expect(failure).toMatchObject({ message: sentence });
    expect(JSON.stringify(failure)).not.toContain('of-another-registry');
  });

  test('that does not exist is told apart from one that is private', async () => {
    const missing = `${registry.host}/lab/none:1`;
    await expect((await create(withPassword({ image: missing }))).start(request())).rejects.toThrow(
      `There is no image ${missing} in its registry.`,
    );
  });

  test('for another architecture alone is told to be that', async () => {
    const foreign = `${registry.host}/lab/busy:foreign`;
    await expect((await create(withPassword({ image: foreign }))).start(request())).rejects.toThrow(
      `The image ${foreign} does not exist for the processor architecture of the engine's machine.`,
    );
  });

  test('is looked for by hub doctor, which pulls nothing and says how to fix what is wrong', async () => {
    const foreign = `${registry.host}/lab/busy:foreign`;
    const spawner = await create(
      withPassword({
        network: 'nowhere',
        allowed_images: [image, busyImage, `${registry.host}/lab/none:1`, foreign],
      }),
    );
    const profiles = [
      [undefined, {}],
      ['root', { image: busyImage, user: '0', network: 'host' }],
      ['fixed', { image: 'fixed:1', pull_policy: 'never', network: 'host' }],
    ] as const;
    const found = await examine(spawner, profiles);
    expect(found['engine']).toMatch(/^ok Docker Engine \d+\S*, API 1\.\d+, answers at unix:/);
    expect(found['limits']).toMatch(/^(ok|warning) /);
    expect(found['network nowhere']).toBe('failed is not there (docker network create nowhere)');
    expect(found[`image ${image}`]).toMatch(/^ok is in its registry/);
    expect(found[`image ${busyImage}`]).toMatch(/^failed its servers would run as root/);
    expect(found[`image ${registry.host}/lab/none:1`]).toMatch(
      /^failed There is no image .*none:1/,
    );
    expect(found['image fixed:1']).toMatch(
      /^failed is not on the engine.*\(docker pull fixed:1\)$/,
    );
    await expect(engine.docker.getImage(image).inspect()).rejects.toMatchObject({
      statusCode: 404,
    });

    const without = await examine(await create({ host: engine.host, image, network: 'host' }));
    expect(without[`image ${image}`]).toMatch(/^failed .* is private.*registry_password\)$/);
    expect(JSON.stringify([found, without])).not.toContain(registry.password);
    const away = await examine(await create({ host: 'unix:///nowhere/docker.sock', image }));
    expect(away).toEqual({
      engine: expect.stringMatching(/^failed .*its socket is not there.*DockerSpawner\.host/),
    });
  });

  test('is pulled with the password, with progress, and once for starts that need it together', async () => {
    const spawner = await create(withPassword());
    const events: SpawnProgress[] = [];
    const onProgress = (event: SpawnProgress) => void events.push(event);
    const servers = await Promise.all([
      spawner.start(request({ serverId: 'one', objectName: 'one', onProgress })),
      spawner.start(request({ serverId: 'two', objectName: 'two' })),
    ]);
    for (const { state } of servers) {
      expect(await spawner.poll(state)).toEqual({ running: true });
      await spawner.stop(state, { graceMs: 0, signal: AbortSignal.timeout(30_000) });
    }
    const pulling = events.filter(({ phase }) => phase === 'pulling');
    expect(pulling[0]?.message).toEqual(`Pulling the image ${image}.`);
    expect(String(pulling.at(-1)?.message)).toMatch(/: \d of 1 layer[.,]/);
  });

  test('is pulled as soon as the hub starts, where that is wanted, and the log says what cannot be', async () => {
    for (const { Id } of await engine.docker.listContainers({ all: true })) {
      await engine.docker.getContainer(Id).remove({ force: true });
    }
    await engine.docker.getImage(image).remove();
    const missing = `${registry.host}/lab/none:1`;
    const options = withPassword({ image: undefined, pull_ahead: true });
    const { spawner, logged } = await createTestSpawner(dockerPlugin, options);
    spawners.push(spawner);
    const profileOptions = new Map(
      [{ image: missing }, { image: 'never:1', pull_policy: 'never' as const }, { image }].map(
        (each, index) => [`profile-${index}`, each] as const,
      ),
    );
    await spawner.open?.({ profileOptions });
    const isLogged = (line: string) => logged.some((each) => each.startsWith(line));
    await until(() => isLogged(`image pulled ahead {"image":"${image}"}`), 'it is pulled');
    expect(await engine.docker.getImage(image).inspect()).toBeDefined();
    expect(isLogged(`image could not be pulled ahead {"image":"${missing}"`)).toBe(true);
    expect(logged.join()).not.toContain('never:1');
  });
});

describe.runIf(hasDocker())('an engine whose disk is full', () => {
  const disk = join(directory, 'disk');
  let engine: TestEngine;

  beforeAll(async () => {
    mkdirSync(disk);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', disk]);
    engine = await startDocker({ dataRoot: disk });
  });
  afterAll(async () => {
    await engine?.[Symbol.asyncDispose]();
    execFileSync('umount', ['--lazy', disk]);
  });

  test('starts no server, says why, and starts it once there is room', async () => {
    const spawner = await create({ host: engine.host, image: busyImage, network: 'host' });
    const filler = join(disk, 'filler');
    try {
      execFileSync('sh', ['-c', `head -c 30000000 /dev/zero > ${filler} || true`], {
        stdio: 'ignore',
      });
      await expect(spawner.start(request())).rejects.toThrow(
        'The disk of the container engine is full.',
      );
      expect(await engine.docker.listContainers({ all: true })).toEqual([]);
    } finally {
      rmSync(filler);
    }
    const { state } = await spawner.start(request());
    expect(await spawner.poll(state)).toEqual({ running: true });
    await spawner.stop(state, { graceMs: 0, signal: AbortSignal.timeout(30_000) });
  });
});

describe.runIf(hasDocker() && requires('openssl'))('an engine behind TLS', () => {
  const at = (name: string) => join(directory, 'tls', name);
  let engine: TestEngine;
  let host: string;

  /** A certificate of an authority, its own where that is its own name. */
  function certify(name: string, authority: string, extensions = ''): void {
    writeFileSync(at(`${name}.ext`), extensions);
    const openssl = (...args: string[]) =>
      execFileSync(pathOf('openssl'), args, { stdio: 'ignore' });
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
    const files = ['-keyout', at(`${name}.key`), '-subj', `/CN=${name}`];
    if (name === authority) {
      openssl('req', '-x509', ...key, ...files, '-out', at(`${name}.pem`), '-days', '2');
      return;
    }
    openssl('req', ...key, ...files, '-out', at(`${name}.csr`));
    const from = ['-CA', at(`${authority}.pem`), '-CAkey', at(`${authority}.key`)];
    const into = ['-CAcreateserial', '-extfile', at(`${name}.ext`), '-out', at(`${name}.pem`)];
    openssl('x509', '-req', '-in', at(`${name}.csr`), ...from, ...into, '-days', '2');
  }

  beforeAll(async () => {
    mkdirSync(at(''));
    certify('authority', 'authority');
    certify('stranger', 'stranger');
    certify('engine', 'authority', 'subjectAltName=IP:127.0.0.1');
    certify('hub', 'authority', 'extendedKeyUsage=clientAuth');
    certify('intruder', 'stranger', 'extendedKeyUsage=clientAuth');
    host = `tcp://127.0.0.1:${await freePort()}`;
    const files = ['--tlscacert', at('authority.pem'), '--tlscert', at('engine.pem')];
    engine = await startDocker({
      args: ['--host', host, '--tlsverify', ...files, '--tlskey', at('engine.key')],
    });
  });
  afterAll(() => engine?.[Symbol.asyncDispose](), 60_000);

  const options = (certificate: string, authority = 'authority') => ({
    host,
    tls_ca: at(`${authority}.pem`),
    tls_cert: at(`${certificate}.pem`),
    tls_key: at(`${certificate}.key`),
    image: busyImage,
    network: 'host',
  });

  test('runs servers for a hub that it knows', async () => {
    const spawner = await create(options('hub'));
    const { state } = await spawner.start(request());
    expect(await spawner.poll(state)).toEqual({ running: true });
    await spawner.stop(state, { graceMs: 0, signal: AbortSignal.timeout(30_000) });
    expect(await spawner.poll(state)).toMatchObject({ running: false });
  });

  test('refuses one that it does not know, and says so', async () => {
    const spawner = await create(options('intruder'));
    await expect(spawner.start(request())).rejects.toThrow(
      `The container engine at ${host} does not answer: it refuses the hub's certificate; check tls_cert and tls_key.`,
    );
  });

  test('is refused by a hub that does not know it', async () => {
    const spawner = await create(options('hub', 'stranger'));
    await expect(spawner.start(request())).rejects.toThrow(/does not answer: .*certificate/);
  });
});
