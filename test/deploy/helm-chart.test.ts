import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { chart, hasHelm, helm, kubectl, renderChart } from '../../scripts/helm.ts';
import { plainManifests } from '../../scripts/plain-manifests.ts';
import { listHelmValues } from '../../scripts/reference/helm-values-page.ts';
import { projectDirectory } from '../support/services.ts';

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  // biome-ignore lint/suspicious/noExplicitAny: objects of any kind
  readonly [field: string]: any;
}

function manifestsOf(text: string): Manifest[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((each) => each !== null);
}

async function render(...args: readonly string[]): Promise<Manifest[]> {
  return manifestsOf(await renderChart(...args));
}

function find(manifests: readonly Manifest[], kind: string, name: string): Manifest | undefined {
  return manifests.find((each) => each.kind === kind && each.metadata.name === name);
}

const configOf = (manifests: readonly Manifest[]) =>
  JSON.parse(find(manifests, 'ConfigMap', 'hub')?.['data']['hub.config.json']) as Record<
    string,
    Record<string, unknown>
  >;

const readProject = (path: string) => readFileSync(join(projectDirectory, path), 'utf8');

test('every value is described, and nothing is described that is none', () => {
  for (const { path, fallback, meaning } of listHelmValues()) {
    expect(meaning, path).not.toBe('');
    if (path !== 'global') expect(fallback, path).toBeDefined();
  }
  const paths = listHelmValues().map(({ path }) => path);
  const values = parse(readFileSync(join(chart, 'values.yaml'), 'utf8')) as object;
  for (const section of Object.keys(values)) {
    expect(paths.some((path) => path === section || path.startsWith(`${section}.`))).toBe(true);
  }
});

test('the version of chart and application is that of the program', () => {
  const { version, appVersion } = parse(readFileSync(join(chart, 'Chart.yaml'), 'utf8')) as Record<
    string,
    string
  >;
  const { version: own } = JSON.parse(readProject('package.json')) as { version: string };
  expect([version, appVersion]).toEqual([own, own]);
});

describe.runIf(hasHelm)('the Helm chart', () => {
  test('is without mistakes', async () => {
    expect(await helm('lint', '--strict', chart)).toContain('0 chart(s) failed');
  });

  test('with its default values is what the plain manifests are (npm run manifests)', async () => {
    for (const [path, text] of await plainManifests()) expect(readProject(path), path).toBe(text);
  });

  test('is installed by kustomize too, namespaces first', async () => {
    const manifests = manifestsOf(
      await kubectl('kustomize', join(projectDirectory, 'deploy/kubernetes')),
    );
    expect(manifests.map(({ kind }) => kind).slice(0, 3)).toEqual([
      'Namespace',
      'Namespace',
      'ServiceAccount',
    ]);
    expect(manifests).toHaveLength((await render()).length + 1);
  });

  test('refers to a Secret with the keys that the example has', async () => {
    const used = [...(await renderChart()).matchAll(/^ +name: hub\n +key: (\S+)$/gm)];
    const { stringData } = parse(readProject('deploy/kubernetes/secret.example.yaml')) as {
      stringData: object;
    };
    expect([...new Set(used.map(([, key]) => key))].toSorted()).toEqual(
      Object.keys(stringData).toSorted(),
    );
  });

  test('holds no secret', async () => {
    expect((await render()).some(({ kind }) => kind === 'Secret')).toBe(false);
  });

  test('merges settings into those that it makes, and keeps the service of the gateways', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'hub-values-'));
    const file = join(directory, 'values.json');
    const own = {
      config: {
        Hub: { title: 'Lab', services: [{ name: 'wiki' }], load_roles: [{ name: 'readers' }] },
        Spawner: { mem_limit: '4G' },
      },
    };
    await writeFile(file, JSON.stringify(own));
    const { Hub = {}, Spawner = {} } = configOf(await render('--values', file));
    expect(Hub).toMatchObject({
      title: 'Lab',
      hub_bind_url: 'http://0.0.0.0:8080',
      services: [{ name: 'wiki' }, { name: 'gateways' }],
      load_roles: [{ name: 'readers' }, { name: 'gateways', scopes: ['gateway'] }],
    });
    expect(Spawner).toMatchObject({ mem_limit: '4G', class: 'kubernetes', cpu_limit: 1 });
    await rm(directory, { recursive: true });
  });

  test('replaces the pods of the hub when their configuration changes', async () => {
    const checksum = (manifests: readonly Manifest[]) =>
      find(manifests, 'Deployment', 'hub')?.['spec'].template.metadata.annotations[
        'checksum/config'
      ];
    const changed = await render('--set', 'config.Hub.title=Other');
    expect(checksum(changed)).not.toBe(checksum(await render()));
  });

  test('keeps SQLite in a volume, for one hub alone', async () => {
    const sqlite = ['--set', 'database.type=sqlite'];
    await expect(render(...sqlite)).rejects.toThrow('sqlite is for one hub: set hub.replicas to 1');
    const manifests = await render(...sqlite, '--set', 'hub.replicas=1');
    const spec = find(manifests, 'Deployment', 'hub')?.['spec'];
    expect(spec.strategy).toEqual({ type: 'Recreate' });
    expect(spec.template.spec.volumes[0]).toEqual({
      name: 'data',
      persistentVolumeClaim: { claimName: 'hub' },
    });
    expect(find(manifests, 'PersistentVolumeClaim', 'hub')).toBeDefined();
    expect(configOf(manifests)['Hub']).not.toHaveProperty('database_url');
    expect(JSON.stringify(manifests)).not.toContain('database-url');
  });

  test('leads the Ingress to the hubs where there are no gateways', async () => {
    const manifests = await render('--set', 'gateways.replicas=0');
    expect(find(manifests, 'Deployment', 'hub-gateway')).toBeUndefined();
    const component = { 'app.kubernetes.io/component': 'hub' };
    expect(find(manifests, 'Service', 'hub')?.['spec'].selector).toMatchObject(component);
    const ports = find(manifests, 'NetworkPolicy', 'hub-api')?.['spec'].ingress.flatMap(
      (rule: { ports: object[] }) => rule.ports,
    );
    expect(ports).toEqual([{ port: 'api' }, { port: 'http' }]);
    expect(configOf(manifests)['Hub']).not.toHaveProperty('services');
  });

  test.for([
    ['gateways.replicas=-1', 'gateways.replicas'],
    ['database.type=mysql', 'database.type'],
    ['hub.replica=2', 'replica'],
    // Without a peer a policy lets everyone in.
    ['networkPolicy.ingressFrom=null', 'ingressFrom'],
    ['networkPolicy.ingressFrom={}', 'ingressFrom'],
  ] as const)('refuses %s and says where', async ([value, where]) => {
    await expect(render('--set', value)).rejects.toThrow(where);
  });
});
