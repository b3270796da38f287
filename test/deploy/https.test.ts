import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { chart, helm } from '../../scripts/helm.ts';
import { loadCheckedConfig } from '../../src/entrances/cli/checked-config.ts';
import { readJsonc } from '../../src/platform/config/read-jsonc.ts';
import type { ConfigError } from '../../src/platform/errors.ts';
import { canRunHelm } from '../support/can-run-helm.ts';
import { checkedConfigOf, configOf, find, render } from '../support/chart.ts';
import { freePort } from '../support/free-port.ts';
import { createHubFolder } from '../support/hub-process.ts';
import { hasPebble, issuedByPebble, startPebble, visit } from '../support/pebble.ts';
import { pathOf, requires } from '../support/requires.ts';
import { projectDirectory } from '../support/services.ts';
import { until } from '../support/test-hub.ts';

const deploy = join(projectDirectory, 'deploy');

const secrets = {
  POSTGRES_PASSWORD: 'x',
  HUB_COOKIE_SECRET: randomBytes(32).toString('hex'),
  DOCKER_GROUP_ID: '9',
};

describe('compose with https', () => {
  const given = { HUB_HOST: 'hub.example.org', HUB_ACME_EMAIL: 'ops@example.org' };

  describe.runIf(requires('docker-compose'))('for docker-compose', () => {
    const configured = async (env: Readonly<Record<string, string>>) => {
      const files = ['compose.yaml', 'compose.https.yaml'].map((name) => join(deploy, name));
      const { stdout } = await promisify(execFile)(
        pathOf('docker-compose'),
        [...files.flatMap((file) => ['--file', file]), 'config'],
        { env: { PATH: '/usr/bin:/bin', ...secrets, ...env } },
      );
      return parse(stdout) as { services: { hub: Record<string, unknown> } };
    };

    test('takes two variables', async () => {
      const { hub } = (await configured(given)).services;
      expect(hub['environment']).toMatchObject({
        HUB_PUBLIC_URL: 'https://hub.example.org/',
        HUB_ACME_EMAIL: 'ops@example.org',
      });
      const [, ...ports] = hub['ports'] as unknown[];
      expect(ports).toEqual([
        { published: 443, target: 8000 },
        { published: 80, target: 8001 },
      ]);
      expect(
        (hub['volumes'] as string[]).filter((volume) => volume.includes('hub.config.json')),
      ).toEqual([expect.stringContaining('/compose.https.hub.config.json:')]);
    });

    test.for(Object.keys(given))('does not start without %s, and says so', async (name) => {
      await expect(configured({ ...given, [name]: '' })).rejects.toThrow('set it in deploy/.env');
    });
  });

  test('has a configuration that is right', async () => {
    const env = {
      ...secrets,
      HUB_DATABASE_URL: 'postgresql://hub:x@database/hub',
      HUB_PUBLIC_URL: 'https://hub.example.org/',
      HUB_ACME_EMAIL: 'ops@example.org',
    };
    const file = join(deploy, 'compose.https.hub.config.json');
    const { config } = await loadCheckedConfig({ file, env });
    expect(config.publicUrl.href).toBe('https://hub.example.org/');
    expect(config.Hub.acme).toMatchObject({ email: 'ops@example.org', challenge: 'tls-alpn-01' });
    await expect(
      loadCheckedConfig({ file, env: { ...env, HUB_ACME_EMAIL: 'nobody' } }),
    ).rejects.toMatchObject({
      problems: [{ path: 'Hub.acme.email', message: 'is not an e-mail address' }],
    });
  });

  test('has the configuration of compose.yaml otherwise', () => {
    const [plain, https] = ['compose.hub.config.json', 'compose.https.hub.config.json'].map(
      (name) => {
        const { value } = readJsonc(readFileSync(join(deploy, name), 'utf8'));
        const { Hub, ...rest } = value as { Hub: Record<string, unknown> };
        const { bind_url, redirect_bind_url, public_url, acme, ...same } = Hub;
        return { ...rest, Hub: same };
      },
    );
    expect(https).toEqual(plain);
  });
});

describe.runIf(canRunHelm())('the Helm chart with tls.mode', () => {
  const acme = 'tls.mode=acme,tls.email=ops@example.org';

  test.for([acme, 'tls.mode=secret', 'tls.mode=secret,gateways.replicas=0'])(
    'is without mistakes with %s',
    async (values) => {
      expect(await helm('lint', '--strict', chart, '--set', values)).toContain('0 chart(s) failed');
      const manifests = await render('--set', values);
      expect(find(manifests, 'Ingress', 'hub')).toBeUndefined();
      expect(find(manifests, 'Service', 'hub')?.['spec']).toMatchObject({
        type: 'LoadBalancer',
        externalTrafficPolicy: 'Local',
      });
      const { Hub } = configOf(manifests);
      expect(Hub).toMatchObject({
        public_url: 'https://hub.example.org/',
        bind_url: 'https://0.0.0.0:8000/',
      });
      // Nothing stands before it whose word would count.
      expect(Hub).not.toHaveProperty('trusted_proxies');
      // Its certificate is what this machine does not have.
      const problems = await checkedConfigOf(manifests).then(
        () => [],
        (error: ConfigError) => error.problems.map(({ path }) => path),
      );
      expect(problems).toEqual(values === acme ? [] : ['Hub.certificates[0].certificate']);
    },
  );

  test('acme: visitors and the authority reach the hub, on 443 and 80', async () => {
    const manifests = await render('--set', acme);
    expect(find(manifests, 'Deployment', 'hub-gateway')).toBeUndefined();
    expect(configOf(manifests)['Hub']).toMatchObject({
      acme: { accept_terms: true, email: 'ops@example.org' },
      redirect_bind_url: 'http://0.0.0.0:8001/',
    });
    expect(find(manifests, 'Service', 'hub')?.['spec']).toMatchObject({
      selector: { 'app.kubernetes.io/component': 'hub' },
      ports: [
        { port: 443, targetPort: 'http' },
        { port: 80, targetPort: 'redirect' },
      ],
    });
    const rules = find(manifests, 'NetworkPolicy', 'hub-api')?.['spec'].ingress;
    expect(rules.at(-1)).toEqual({ ports: [{ port: 'http' }, { port: 'redirect' }] });
    // A challenge that gateways need not answer.
    const byDns = await render('--set', `${acme},config.Hub.acme.challenge=dns-01`);
    expect(find(byDns, 'Deployment', 'hub-gateway')).toBeDefined();
  });

  test.runIf(hasPebble())('acme: its configuration orders a certificate', async () => {
    await using pebble = await startPebble();
    const { ports } = pebble;
    await using folder = await createHubFolder();
    // What is of a cluster: addresses, and here the authority.
    const text = JSON.stringify(configOf(await render('--set', acme)))
      .replace('//0.0.0.0:8000/', `//127.0.0.1:${ports.tls}/`)
      .replace('//0.0.0.0:8001/', `//127.0.0.1:${ports.http}/`)
      .replace('//0.0.0.0:8080', `//${new URL(folder.apiUrl).host}`)
      .replace('"accept_terms":true', `$&,"directory":${JSON.stringify(pebble.directory)}`);
    await writeFile(folder.configFile, text);
    // No server is started, so that nobody has to answer there.
    const kubeconfig = join(folder.directory, 'kubeconfig.json');
    const server = `http://127.0.0.1:${await freePort()}`;
    await writeFile(
      kubeconfig,
      JSON.stringify({
        'current-context': 'lab',
        clusters: [{ name: 'lab', cluster: { server } }],
        users: [{ name: 'hub', user: {} }],
        contexts: [{ name: 'lab', context: { cluster: 'lab', user: 'hub' } }],
      }),
    );
    await using _ = await folder.start(undefined, {
      HUB_INSTANCE_URL: new URL(folder.apiUrl).origin,
      HUB_COOKIE_SECRET: secrets.HUB_COOKIE_SECRET,
      KUBECONFIG: kubeconfig,
      NODE_EXTRA_CA_CERTS: pebble.certificateFile,
    });
    const ca = await pebble.root();
    const seen = () => visit('hub.example.org', ports.tls, ca).catch(() => undefined);
    await until(async () => (await seen())?.status === 200, 'https with a certificate');
    expect(await seen()).toMatchObject(issuedByPebble('hub.example.org'));
    expect(await visit('hub.example.org', ports.http)).toMatchObject({
      status: 308,
      location: 'https://hub.example.org/hub/login',
    });
  });

  test('secret: the hub reads it, and gateways have it from the hub', async () => {
    const manifests = await render('--set', 'tls.mode=secret,tls.secret=lab-tls');
    const { containers, volumes } =
      find(manifests, 'Deployment', 'hub')?.['spec'].template.spec ?? {};
    expect(volumes).toContainEqual({
      name: 'tls',
      secret: { secretName: 'lab-tls', defaultMode: 0o440 },
    });
    expect(configOf(manifests)['Hub']?.['certificates']).toEqual([
      { certificate: '/etc/hub/tls/tls.crt', key: '/etc/hub/tls/tls.key' },
    ]);
    expect(containers[0].volumeMounts).toContainEqual({
      name: 'tls',
      mountPath: '/etc/hub/tls',
      readOnly: true,
    });
    const gateway = find(manifests, 'Deployment', 'hub-gateway')?.['spec'].template.spec.containers;
    expect(gateway[0].command.slice(-4)).toEqual([
      '--bind',
      'https://0.0.0.0:8000/',
      '--redirect-bind',
      'http://0.0.0.0:8001/',
    ]);
    expect(gateway[0].ports).toEqual([
      { name: 'http', containerPort: 8000 },
      { name: 'redirect', containerPort: 8001 },
    ]);
    expect(configOf(manifests)['Hub']).not.toHaveProperty('redirect_bind_url');
    expect(find(manifests, 'Service', 'hub')?.['spec'].ports).toEqual([
      { name: 'https', port: 443, targetPort: 'http' },
      { name: 'http', port: 80, targetPort: 'redirect' },
    ]);
    const ingress = find(manifests, 'NetworkPolicy', 'hub-gateway')?.['spec'].ingress;
    expect(ingress).toEqual([{ ports: [{ port: 'http' }, { port: 'redirect' }] }]);
  });

  test.for([
    ['tls.mode=yes', 'tls.mode'],
    [`${acme},gateways.replicas=2`, 'without gateways'],
    [`${acme},httpRoute.enabled=true`, 'httpRoute'],
  ] as const)('refuses %s and says where', async ([values, where]) => {
    await expect(render('--set', values)).rejects.toThrow(where);
  });
});
