import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { kubectl, pathOf, renderChart } from '../../scripts/helm.ts';
import { plainValues } from '../../scripts/plain-manifests.ts';
import { canRunHelm } from '../support/can-run-helm.ts';
import { usePostgres } from '../support/databases.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { spawnHubProcess, startHubProcess } from '../support/hub-process.ts';
import { canRunPods, useKubernetesApi } from '../support/kubernetes-api.ts';
import { hasPostgres } from '../support/postgres.ts';
import { projectDirectory } from '../support/services.ts';
import { submitForm, submitLogin, until } from '../support/test-hub.ts';

const run = promisify(execFile);

// biome-ignore lint/suspicious/noExplicitAny: objects of the API, whose fields tests pick out
type Manifest = any;

function manifestsOf(text: string): Manifest[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest)
    .filter((each) => each !== null);
}

const page = readFileSync(join(projectDirectory, 'docs/how-to/deploy-on-kubernetes.md'), 'utf8');

/** The first commands of a section of the page. */
function section(heading: string): string {
  const [, text = ''] = page.split(`\n## ${heading}\n`);
  const [, commands] = /^```sh\n(.*?)^```$/ms.exec(text) ?? [];
  if (commands === undefined) throw new Error(`the page has no commands in ${heading}`);
  return commands;
}

const plurals: Readonly<Record<string, string>> = {
  Namespace: 'namespaces',
  ServiceAccount: 'serviceaccounts',
  Role: 'roles',
  RoleBinding: 'rolebindings',
  ConfigMap: 'configmaps',
  Secret: 'secrets',
  Service: 'services',
  Deployment: 'deployments',
  PodDisruptionBudget: 'poddisruptionbudgets',
  Ingress: 'ingresses',
  NetworkPolicy: 'networkpolicies',
  PersistentVolumeClaim: 'persistentvolumeclaims',
  ResourceQuota: 'resourcequotas',
  Pod: 'pods',
};

/** Where an object of a kind is created. */
function collectionOf({ apiVersion, kind, metadata }: Manifest): string {
  const plural = plurals[kind];
  if (plural === undefined) throw new Error(`the tests know no ${kind}`);
  const where = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`;
  return `/${apiVersion.includes('/') ? 'apis' : 'api'}/${apiVersion}${where}/${plural}`;
}

describe.runIf(canRunHelm() && canRunPods() && hasPostgres())(
  'the manifests at an API server',
  () => {
    const cluster = useKubernetesApi();
    const postgres = usePostgres();
    let manifests: readonly Manifest[] = [];
    let token = '';

    /** Creates an object, or only asks whether it could be created. */
    async function create(manifest: Manifest, { isDryRun = false } = {}) {
      const { status, body } = await cluster().request(
        'POST',
        `${collectionOf(manifest)}${isDryRun ? '?dryRun=All' : ''}`,
        manifest,
      );
      const name = `${manifest.kind} ${manifest.metadata.name}`;
      return { name, status, message: String(body?.message ?? '') };
    }

    /** Runs commands of the page, as the administrator of the cluster. */
    async function runAsReader(commands: string): Promise<string> {
      // This API server has no OpenAPI documents, by which kubectl checks; it checks everything itself.
      const adapted = commands.replaceAll('kubectl apply', 'kubectl apply --validate=false');
      const { stdout } = await run('sh', ['-ec', adapted], {
        cwd: projectDirectory,
        env: {
          PATH: `${dirname(await pathOf('kubectl'))}:/usr/bin:/bin`,
          HOME: cluster().directory,
          KUBECONFIG: cluster().kubeconfigPath,
        },
      });
      return stdout;
    }

    const find = (kind: string, name: string) =>
      manifests.find((each) => each.kind === kind && each.metadata.name === name);

    beforeAll(async () => {
      manifests = manifestsOf(
        await kubectl('kustomize', join(projectDirectory, 'deploy/kubernetes')),
      );
      await runAsReader(section('Namespace'));
      await runAsReader(section('The Secret'));
      await runAsReader(section('With plain manifests'));
      token = await cluster().createToken('hub', 'hub');
    });

    test.for([
      [],
      [...plainValues],
      ['--set', 'gateways.replicas=0', '--set', 'networkPolicy.enabled=false'],
      ['--set', 'servers.quota.pods=100', '--set', 'secret.keyvUrl=true'],
      ['--set', 'servers.files.a.mountPath=/a', '--set', 'servers.files.a.content=b'],
      ['--set', 'image.pullSecrets={registry}', '--set', 'hub.nodeSelector.disk=ssd'],
      ['--set', 'ingress.className=nginx', '--set', 'ingress.tlsSecret='],
      ['--set', 'hub.env[0].name=A', '--set', 'hub.env[0].value=b'],
    ])('are right by the published schemas also with %s', async (args) => {
      for (const manifest of manifestsOf(await renderChart(...args))) {
        const { status, message, name } = await create(manifest, { isDryRun: true });
        expect([201, 409], `${name}: ${message}`).toContain(status);
      }
    });

    test('are refused when a field is misspelt', async () => {
      const deployment = structuredClone(find('Deployment', 'hub'));
      deployment.metadata.name = 'other';
      deployment.spec.template.spec.containers[0].imagePullPolice = 'Always';
      const { status, message } = await create(deployment, { isDryRun: true });
      expect([status, message]).toEqual([400, expect.stringContaining('imagePullPolice')]);
    });

    test.for(['hub', 'hub-gateway'])(
      'have a pod %s that meets the restricted standard',
      async (name) => {
        const { metadata, spec } = find('Deployment', name).spec.template;
        const pod = {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { ...metadata, name, namespace: 'hub' },
          spec,
        };
        expect(await create(pod, { isDryRun: true })).toMatchObject({ status: 201 });
        const privileged = structuredClone(pod);
        delete privileged.spec.containers[0].securityContext;
        const refused = await create(privileged, { isDryRun: true });
        expect([refused.status, refused.message]).toEqual([
          403,
          expect.stringContaining('restricted'),
        ]);
      },
    );

    test('are all there, with the Secret that they refer to', async () => {
      for (const manifest of manifests) {
        const path = `${collectionOf(manifest)}/${manifest.metadata.name}`;
        expect((await cluster().request('GET', path)).status, path).toBe(200);
      }
      const { body } = await cluster().request('GET', '/api/v1/namespaces/hub/secrets/hub');
      const needed = find('Deployment', 'hub').spec.template.spec.containers[0].env.flatMap(
        ({ valueFrom }: Manifest) => valueFrom?.secretKeyRef?.key ?? [],
      );
      expect(Object.keys(body.data).toSorted()).toEqual(needed.toSorted());
    });

    const servers = '/api/v1/namespaces/hub-servers';
    const rights: readonly (readonly [method: string, path: string, status: number])[] = [
      ['GET', `${servers}/pods`, 200],
      ['GET', `${servers}/events`, 200],
      ['GET', `${servers}/pods/none/log`, 404],
      ['GET', `${servers}/persistentvolumeclaims/none`, 404],
      ['DELETE', `${servers}/pods/none`, 404],
      ['DELETE', `${servers}/secrets/none`, 404],
      ['DELETE', `${servers}/persistentvolumeclaims/none`, 404],
      ['GET', `${servers}/secrets`, 403],
      ['GET', `${servers}/secrets/none`, 403],
      ['DELETE', `${servers}/secrets`, 403],
      ['DELETE', `${servers}/pods`, 403],
      ['PATCH', `${servers}/pods/none`, 403],
      ['POST', `${servers}/pods/none/exec`, 403],
      ['GET', `${servers}/configmaps`, 403],
      ['POST', `${servers}/serviceaccounts`, 403],
      ['GET', `${servers}/persistentvolumeclaims`, 403],
      ['POST', '/apis/rbac.authorization.k8s.io/v1/namespaces/hub-servers/rolebindings', 403],
      ['GET', '/api/v1/namespaces/hub/secrets/hub', 403],
      ['GET', '/api/v1/namespaces/hub/pods', 403],
      ['POST', '/api/v1/namespaces/hub/pods', 403],
      ['GET', '/api/v1/pods', 403],
      ['GET', '/api/v1/namespaces', 403],
      ['GET', '/api/v1/nodes', 403],
      ['GET', '/api/v1/namespaces/kube-system/secrets', 403],
      ['GET', '/apis/apps/v1/namespaces/hub/deployments/hub', 403],
    ];

    test.for(rights)('let the hub %s %s: %i', async ([method, path, status]) => {
      const body = method === 'POST' || method === 'PATCH' ? {} : undefined;
      expect((await cluster().requestAs(token, method, path, body)).status).toBe(status);
    });

    test('give gateways no rights at all', async () => {
      const { spec } = find('Deployment', 'hub-gateway').spec.template;
      expect(spec.automountServiceAccountToken).toBe(false);
      const gateways = await cluster().createToken('hub', 'default');
      expect((await cluster().requestAs(gateways, 'GET', `${servers}/pods`)).status).toBe(403);
    });

    test('run a hub and a gateway, with which a user starts and stops a pod', async () => {
      const directory = await mkdtemp(join(tmpdir(), 'hub-manifests-'));
      const [front, http, api, port] = [
        await freePort(),
        await freePort(),
        await freePort(),
        await freePort(),
      ];
      const local = (text: string) =>
        text
          .replaceAll('http://hub-api.hub.svc:8080', `http://127.0.0.1:${api}`)
          .replace('http://0.0.0.0:8000/', `http://127.0.0.1:${http}/`)
          .replace('http://0.0.0.0:8080', `http://0.0.0.0:${api}`)
          .replace('https://hub.example.org/', `http://127.0.0.1:${front}/`);
      const config = JSON.parse(local(find('ConfigMap', 'hub').data['hub.config.json']));
      // Pods of a cluster could not reach a loopback address.
      config.Hub.hub_connect_url = `http://${hostname()}:${api}`;
      // What a reader sets for themselves; accounts and images are not there.
      Object.assign(config.Hub, { authenticator_class: 'dummy' });
      config.Authenticator = { allow_all: true };
      config.DummyAuthenticator = { password: 'test' };
      const guard = [process.execPath, join(projectDirectory, 'src/singleuser-main.ts'), '--'];
      const workspace = join(projectDirectory, 'examples/workspace/workspace.ts');
      config.Spawner.cmd = [...guard, process.execPath, workspace];
      Object.assign(config.KubernetesSpawner, { port });
      await writeFile(join(directory, 'hub.config.json'), JSON.stringify(config));

      // Each variable of the Deployment, and none besides, as a pod would have it.
      const values: Readonly<Record<string, string>> = {
        POD_IP: '127.0.0.1',
        HUB_INSTANCE_URL: `http://127.0.0.1:${api}`,
        HUB_COOKIE_SECRET: randomBytes(32).toString('hex'),
        HUB_DATABASE_URL: await postgres().createDatabase(),
        HUB_GATEWAY_TOKEN: randomBytes(32).toString('hex'),
      };
      const environmentOf = (deployment: string): Record<string, string> => {
        const [{ env }] = find('Deployment', deployment).spec.template.spec.containers;
        return Object.fromEntries(
          env.map(({ name }: { name: string }) => [name, values[name] ?? '']),
        );
      };
      const env = {
        ...environmentOf('hub'),
        KUBECONFIG: await cluster().writeKubeconfig('hub', 'hub'),
      };
      try {
        await using hub = await startHubProcess(['start'], { cwd: directory, env });
        const [, , ...words] = find('Deployment', 'hub-gateway').spec.template.spec.containers[0]
          .command;
        const args = words.map((word: string) =>
          word === 'http://0.0.0.0:8000/' ? `http://127.0.0.1:${front}/` : local(word),
        );
        await using gateway = spawnHubProcess(args, {
          cwd: directory,
          env: environmentOf('hub-gateway'),
        });
        await until(() => gateway.stdout().includes('The gateway is ready at'), 'gateway ready');

        const [container] = find('Deployment', 'hub').spec.template.spec.containers;
        for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe']) {
          const { path, port: name } = container[probe].httpGet;
          const ports: Readonly<Record<string, number>> = { http, api };
          const answer = await fetch(`http://127.0.0.1:${ports[name]}${path}`);
          expect([probe, answer.status]).toEqual([probe, 200]);
        }

        const url = `http://127.0.0.1:${front}/`;
        const browser = new FakeBrowser();
        expect((await submitLogin(browser, url, 'ada', 'test')).status).toBe(302);
        const pressOn = async (action: RegExp) => {
          const home = await browser.open(`${url}hub/home`);
          const forms = home.body.match(/<form[\s\S]*?<\/form>/g) ?? [];
          const form = forms.find((each) => action.test(/action="([^"]*)"/.exec(each)?.[1] ?? ''));
          expect((await submitForm(browser, { ...home, body: form ?? '' }, {})).status).toBe(303);
        };
        await pressOn(/spawn/);
        let page = await browser.open(`${url}user/ada/`);
        await until(async () => {
          page = await browser.open(`${url}user/ada/`);
          return page.status === 200 || page.body.includes('did not');
        }, 'the server answers');
        expect([page.status, page.body]).toEqual([200, expect.stringContaining('ada')]);
        const { body } = await cluster().request('GET', `${servers}/pods`);
        expect(body.items).toHaveLength(1);
        expect(body.items[0].status.phase).toBe('Running');

        await pressOn(/stop/);
        await until(
          async () => (await cluster().request('GET', `${servers}/pods`)).body.items.length === 0,
          'the pod is gone',
        );
        const secrets = await cluster().request('GET', `${servers}/secrets`);
        expect(secrets.body.items).toEqual([]);
        gateway.signal('SIGTERM');
        hub.signal('SIGTERM');
        expect([await gateway.exited, await hub.exited]).toEqual([0, 0]);
        // Nothing that it needed was refused to it.
        expect(hub.stderr()).not.toMatch(/forbidden/i);
      } finally {
        await rm(directory, { recursive: true, force: true });
      }
    });
  },
);
