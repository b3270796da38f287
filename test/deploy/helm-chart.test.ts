import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { chart, helm, kubectl, renderChart } from '../../scripts/helm.ts';
import { plainManifests, plainValues } from '../../scripts/plain-manifests.ts';
import { listHelmValues } from '../../scripts/reference/helm-values-page.ts';
import { isBackupName } from '../../src/platform/store/database-backup.ts';
import { canRunHelm } from '../support/can-run-helm.ts';
import {
  checkedConfigOf,
  configOf,
  find,
  type Manifest,
  manifestsOf,
  render,
  withFile,
} from '../support/chart.ts';
import { projectDirectory } from '../support/services.ts';

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

describe.runIf(canRunHelm())('the Helm chart', () => {
  test('is without mistakes', async () => {
    expect(await helm('lint', '--strict', chart)).toContain('0 chart(s) failed');
  });

  test('is what the plain manifests are made from (npm run manifests)', async () => {
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
    // A namespace more, and no test.
    expect(manifests).toHaveLength((await render(...plainValues)).length);
  });

  test('refers to a Secret with the keys that the example has', async () => {
    const used = [...(await renderChart(...plainValues)).matchAll(/^ +name: hub\n +key: (\S+)$/gm)];
    const { stringData } = parse(readProject('deploy/kubernetes/secret.example.yaml')) as {
      stringData: object;
    };
    expect([...new Set(used.map(([, key]) => key))].toSorted()).toEqual(
      Object.keys(stringData).toSorted(),
    );
  });

  test.for([
    '',
    'database.type=postgresql,secret.databaseUrl=postgresql://db/hub',
    'secret.keyvUrl=true',
    'gateways.replicas=0',
  ])('makes a configuration that is right with the values %j', async (values) => {
    const { publicUrl, Spawner } = await checkedConfigOf(await render('--set', values));
    expect(publicUrl.href).toBe('https://hub.example.org/');
    expect(Spawner.class).toBe('kubernetes');
  });

  test('takes the values that the documentation shows', async () => {
    const page = readProject('docs/how-to/deploy-on-kubernetes.md');
    const [, shown = ''] = /^```yaml\n(# values-lab.yaml\n.*?)^```$/ms.exec(page) ?? [];
    const manifests = await withFile(shown, (file) => render('--values', file));
    const { containers } = find(manifests, 'Deployment', 'hub')?.['spec'].template.spec ?? {};
    expect(containers[0].image).toBe('registry.example.org/hub:0.1.0');
    const { authenticators, Hub } = await checkedConfigOf(manifests);
    expect(authenticators).toMatchObject([{ class: 'oidc' }]);
    expect(Hub.trusted_proxies).toEqual(['10.244.0.0/16']);
  });

  test('gives the hub the rights that the page of the spawner lists', async () => {
    const page = readProject('docs/how-to/run-on-kubernetes.md');
    const [, shown = ''] = /^```yaml\n(.*?kind: Role\n.*?)^```$/ms.exec(page) ?? [];
    const [documented] = manifestsOf(shown);
    expect(documented?.['rules']).toEqual(find(await render(), 'Role', 'hub')?.['rules']);
    const adopting = await render('--set', 'config.KubernetesSpawner.adopt_claims=true');
    expect(find(adopting, 'Role', 'hub')?.['rules']).toContainEqual({
      apiGroups: [''],
      resources: ['persistentvolumeclaims'],
      verbs: ['get', 'create', 'delete', 'patch'],
    });
  });

  test('holds no secret where somebody else makes it', async () => {
    const manifests = await render('--set', 'secret.create=false');
    expect(manifests.some(({ kind }) => kind === 'Secret')).toBe(false);
  });

  test('runs several hubs on PostgreSQL, and as many as it is told', async () => {
    const replicas = async (...values: readonly string[]) =>
      find(await render(...plainValues, ...values), 'Deployment', 'hub')?.['spec'].replicas;
    expect(await replicas()).toBe(2);
    expect(await replicas('--set', 'hub.replicas=3')).toBe(3);
  });

  test('mounts files into the servers of users', async () => {
    const mountPath = '/etc/jupyter/jupyter_server_config.py';
    const content = 'c.ServerApp.shutdown_no_activity_timeout = 0\n';
    const servers = { files: { settings: { mountPath, content } } };
    const manifests = await withFile(JSON.stringify({ servers }), (file) =>
      render('--values', file),
    );
    const map = find(manifests, 'ConfigMap', 'hub-files');
    expect(map?.metadata.namespace).toBe('hub-servers');
    expect(map?.['data']).toEqual({ settings: content });
    const { Spawner } = await checkedConfigOf(manifests);
    expect(Spawner.class).toBe('kubernetes');
    expect(configOf(manifests)['KubernetesSpawner']?.['pod_patch']).toEqual({
      spec: {
        containers: [
          {
            name: 'server',
            volumeMounts: [{ name: 'files', mountPath, subPath: 'settings', readOnly: true }],
          },
        ],
        volumes: [{ name: 'files', configMap: { name: 'hub-files' } }],
      },
    });
    const config = { KubernetesSpawner: { pod_patch: { metadata: {} } } };
    await expect(
      withFile(JSON.stringify({ servers, config }), (file) => render('--values', file)),
    ).rejects.toThrow('mount the files there');
  });

  test('merges settings into those that it makes, and keeps the service of the gateways', async () => {
    const own = {
      config: {
        Hub: { title: 'Lab', services: [{ name: 'wiki' }], load_roles: [{ name: 'readers' }] },
        Spawner: { mem_limit: '4G' },
      },
    };
    const manifests = await withFile(JSON.stringify(own), (file) => render('--values', file));
    const { Hub = {}, Spawner = {} } = configOf(manifests);
    expect(Hub).toMatchObject({
      title: 'Lab',
      hub_bind_url: 'http://0.0.0.0:8080',
      services: [{ name: 'wiki' }, { name: 'gateways' }],
      load_roles: [{ name: 'readers' }, { name: 'gateways', scopes: ['gateway'] }],
    });
    expect(Spawner).toMatchObject({ mem_limit: '4G', class: 'kubernetes', cpu_limit: 1 });
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
    await expect(render('--set', 'hub.replicas=2')).rejects.toThrow('sqlite is for one hub');
    const manifests = await render();
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

  test('leads all hosts to the gateways, by an Ingress, a Gateway or a load balancer', async () => {
    const values = {
      config: { Hub: { subdomain_host: 'https://hub.example.org' } },
      ingress: { extraHosts: ['wiki.example.org'] },
      httpRoute: { enabled: true, parentRefs: [{ name: 'public' }] },
      service: { type: 'LoadBalancer', annotations: { scheme: 'internal' } },
    };
    const manifests = await withFile(JSON.stringify(values), (file) => render('--values', file));
    const hosts = ['hub.example.org', 'wiki.example.org', '*.hub.example.org'];
    const ingress = find(manifests, 'Ingress', 'hub')?.['spec'];
    expect(ingress.rules.map(({ host }: { host: string }) => host)).toEqual(hosts);
    expect(ingress.tls).toEqual([{ hosts, secretName: 'hub-tls' }]);
    expect(find(manifests, 'HTTPRoute', 'hub')?.['spec']).toMatchObject({
      parentRefs: [{ name: 'public' }],
      hostnames: hosts,
      rules: [{ backendRefs: [{ name: 'hub', port: 80 }] }],
    });
    expect(find(manifests, 'Service', 'hub')).toMatchObject({
      metadata: { annotations: { scheme: 'internal' } },
      spec: { type: 'LoadBalancer' },
    });
    const byRoute = await render('--set', 'ingress.enabled=false,httpRoute.enabled=true');
    expect((await checkedConfigOf(byRoute)).publicUrl.href).toBe('https://hub.example.org/');
  });

  test('places pods, annotates them, and runs containers before and beside them', async () => {
    const own = {
      affinity: { podAffinity: {} },
      priorityClassName: 'high',
      podAnnotations: { vault: 'yes' },
      initContainers: [{ name: 'before' }],
      extraContainers: [{ name: 'beside' }],
      env: [{ name: 'TZ', value: 'UTC' }],
    };
    const hub = { ...own, serviceAccountAnnotations: { role: 'hub' } };
    const manifests = await withFile(JSON.stringify({ hub, gateways: own }), (file) =>
      render('--values', file),
    );
    for (const name of ['hub', 'hub-gateway']) {
      const { metadata, spec } = find(manifests, 'Deployment', name)?.['spec'].template ?? {};
      const { affinity, priorityClassName, podAnnotations, initContainers } = own;
      expect(spec, name).toMatchObject({ affinity, priorityClassName, initContainers });
      expect(metadata.annotations, name).toMatchObject(podAnnotations);
      expect(spec.containers[1], name).toEqual(own.extraContainers[0]);
      expect(spec.containers[0].env, name).toContainEqual(own.env[0]);
    }
    const account = find(manifests, 'ServiceAccount', 'hub');
    expect(account?.metadata).toMatchObject({ annotations: { role: 'hub' } });
  });

  test('makes a Secret where it is asked to, with what the pods read', async () => {
    const make = ['--set', 'database.type=postgresql'];
    await expect(render(...make)).rejects.toThrow('secret.create needs secret.databaseUrl');
    const manifests = await render(...make, '--set', 'secret.databaseUrl=postgresql://db/hub');
    const data = find(manifests, 'Secret', 'hub')?.['data'] as Record<string, string>;
    const read = (key: string) => Buffer.from(data[key] ?? '', 'base64').toString();
    expect(read('database-url')).toBe('postgresql://db/hub');
    const drawn = ['cookie-secret', 'gateway-token', 'metrics-token'].map(read);
    expect(new Set(drawn).size).toBe(3);
    for (const each of drawn) expect(each).toMatch(/^[0-9a-f]{64}$/);
  });

  test('pulls each image of users before they wait for it', async () => {
    const KubernetesSpawner = { image: 'lab/base:1', allowed_images: { Big: 'lab/big:1' } };
    const values = { config: { KubernetesSpawner }, prePuller: { enabled: true, images: ['a:1'] } };
    const manifests = await withFile(JSON.stringify(values), (file) => render('--values', file));
    const { spec } = find(manifests, 'DaemonSet', 'hub-pre-puller')?.['spec'].template ?? {};
    const images = spec.initContainers.map(({ image }: { image: string }) => image);
    expect(images).toEqual(['lab/base:1', 'lab/big:1', 'a:1']);
  });

  test('backs PostgreSQL up by a job that reads what the hub reads, and keeps the newest', async () => {
    const on = ['--set', 'backup.enabled=true,backup.keep=2,hub.env[0].name=X'];
    await expect(render(...on)).rejects.toThrow('backup.enabled needs database.type postgresql');
    const manifests = await render(...plainValues, ...on);
    const job = find(manifests, 'CronJob', 'hub-backup')?.['spec'];
    expect(job.concurrencyPolicy).toBe('Forbid');
    const { spec } = job.jobTemplate.spec.template;
    const hub = find(manifests, 'Deployment', 'hub')?.['spec'].template.spec;
    const [container] = spec.containers;
    for (const field of ['image', 'env', 'securityContext'])
      expect(container[field], field).toEqual(hub.containers[0][field]);
    expect(spec.securityContext).toEqual(hub.securityContext);
    const claims = spec.volumes.flatMap(
      (volume: Manifest) => volume['persistentVolumeClaim'] ?? [],
    );
    expect(claims).toEqual([{ claimName: 'hub-backups' }]);
    expect(find(manifests, 'PersistentVolumeClaim', 'hub-backups')).toBeDefined();

    const folder = await mkdtemp(join(tmpdir(), 'hub-backups-'));
    const old = ['2026-01-01', '2026-01-02'].map((day) => `hub-${day}T03-17-00Z.jsonl.gz`);
    for (const name of [...old, `${old[0]}.part`, 'notes']) await writeFile(join(folder, name), '');
    // The program's place is taken by one that makes the file.
    const script = container.command[2]
      .replace('/backups', folder)
      .replace(/node .* backup --config \S+/, 'touch');
    await promisify(execFile)('/bin/sh', ['-euc', script]);
    const left = await readdir(folder);
    await rm(folder, { recursive: true });
    const made = left.find((name) => isBackupName(name) && name !== old[1]);
    expect(left.toSorted()).toEqual([old[1], made, 'notes']);
  });

  test('holds room for servers by pods that give way to them, where servers run', async () => {
    const tolerations = [{ key: 'lab', operator: 'Exists' }];
    const KubernetesSpawner = { node_selector: { pool: 'users' }, tolerations };
    const values = { config: { KubernetesSpawner }, placeholders: { replicas: 3 } };
    const manifests = await withFile(JSON.stringify(values), (file) => render('--values', file));
    const deployment = find(manifests, 'Deployment', 'hub-placeholder');
    expect(deployment?.metadata.namespace).toBe('hub-servers');
    expect(deployment?.['spec'].replicas).toBe(3);
    const { priorityClassName, nodeSelector, ...pod } = deployment?.['spec'].template.spec ?? {};
    expect({ nodeSelector, tolerations: pod.tolerations }).toEqual({
      nodeSelector: { pool: 'users' },
      tolerations,
    });
    const priority = find(manifests, 'PriorityClass', priorityClassName);
    expect(priority).toMatchObject({ value: -10, preemptionPolicy: 'Never' });
    await expect(render('--set', 'placeholders.priority=1')).rejects.toThrow('priority');
  });

  test('gives the Prometheus Operator a token that reads metrics and nothing else', async () => {
    const manifests = await render('--set', 'serviceMonitor.enabled=true');
    const [endpoint] = find(manifests, 'ServiceMonitor', 'hub')?.['spec'].endpoints ?? [];
    expect(endpoint.authorization.credentials).toEqual({ name: 'hub', key: 'metrics-token' });
    await checkedConfigOf(manifests);
    expect(configOf(manifests)['Hub']).toMatchObject({
      services: [{ name: 'gateways' }, { name: 'prometheus' }],
      load_roles: [
        { name: 'gateways' },
        { name: 'metrics', scopes: ['read:metrics'], services: ['prometheus'] },
      ],
    });
  });

  test('asks a hub whether it is ready, for helm test', async () => {
    const pod = find(await render(), 'Pod', 'hub-test');
    expect(pod?.metadata).toMatchObject({ annotations: { 'helm.sh/hook': 'test' } });
    const [container] = pod?.['spec'].containers ?? [];
    expect(container.command.join(' ')).toContain('http://hub-api.hub.svc:8080/hub/ready');
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
