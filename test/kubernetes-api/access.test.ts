import { describe, expect, test } from 'vitest';
import {
  canServeKubernetes,
  type KubernetesAnswer,
  useKubernetesApi,
} from '../support/kubernetes-api.ts';
import { podManifest } from '../support/kubernetes-pods.ts';

const rbac = 'rbac.authorization.k8s.io';

describe.skipIf(!canServeKubernetes())('what may be done in the small Kubernetes', () => {
  const cluster = useKubernetesApi();
  const base = () => `/api/v1/namespaces/${cluster().namespace}`;
  const create = (plural: string, body: object) =>
    cluster().request('POST', `${base()}/${plural}`, body);
  const messageOf = ({ status, body }: KubernetesAnswer) => `${status} ${body.message}`;

  async function allow(account: string, rules: readonly object[]): Promise<string> {
    const { namespace } = cluster();
    await create('serviceaccounts', {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: account },
    });
    const url = `/apis/${rbac}/v1/namespaces/${namespace}`;
    const metadata = { name: account };
    const made = [
      await cluster().request('POST', `${url}/roles`, {
        apiVersion: `${rbac}/v1`,
        kind: 'Role',
        metadata,
        rules,
      }),
      await cluster().request('POST', `${url}/rolebindings`, {
        apiVersion: `${rbac}/v1`,
        kind: 'RoleBinding',
        metadata,
        roleRef: { apiGroup: rbac, kind: 'Role', name: account },
        subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
      }),
    ];
    expect(made.map(({ status }) => status)).toEqual([201, 201]);
    return cluster().createToken(namespace, account);
  }

  test('is refused to strangers, and to those whose token is not of here', async () => {
    const pods = `${base()}/pods`;
    expect(messageOf(await cluster().requestAs('', 'GET', pods))).toBe(
      '403 pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "hub-servers"',
    );
    expect(messageOf(await cluster().requestAs('wrong', 'GET', pods))).toBe('401 Unauthorized');
    expect((await cluster().requestAs('', 'GET', '/version')).body.major).toBe('1');
    expect((await cluster().requestAs('', 'GET', '/readyz')).body).toBe('ok');
    expect((await cluster().requestAs('', 'GET', '/api')).status).toBe(403);
  });

  test('is to a service account exactly what roles say', async () => {
    const token = await allow('reader', [
      { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] },
      { apiGroups: [''], resources: ['secrets'], verbs: ['get'], resourceNames: ['mine'] },
    ]);
    const as = (method: string, path: string) => cluster().requestAs(token, method, path);
    expect((await as('GET', `${base()}/pods`)).status).toBe(200);
    expect(messageOf(await as('GET', `${base()}/pods?watch=true`))).toMatch(/cannot watch/);
    expect(messageOf(await as('GET', `${base()}/pods/x/log`))).toBe(
      '403 pods "x" is forbidden: User "system:serviceaccount:hub-servers:reader" cannot get resource "pods/log" in API group "" in the namespace "hub-servers"',
    );
    expect(messageOf(await as('GET', '/api/v1/pods'))).toMatch(/at the cluster scope/);
    expect((await as('GET', `${base()}/secrets/mine`)).status).toBe(404);
    expect((await as('GET', `${base()}/secrets/other`)).status).toBe(403);
    expect((await as('GET', '/apis')).status).toBe(200);
    const review = (verb: string) =>
      cluster().requestAs(token, 'POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes: { namespace: cluster().namespace, resource: 'pods', verb } },
      });
    expect((await review('list')).body.status.allowed).toBe(true);
    expect((await review('delete')).body.status.allowed).toBe(false);
  });

  test('may be done on trial, and with a token that is asked for', async () => {
    const trial = podManifest('trial', { command: ['true'] });
    const dry = await cluster().request('POST', `${base()}/pods?dryRun=All`, trial);
    expect([dry.status, dry.body.spec.schedulerName]).toEqual([201, 'default-scheduler']);
    expect((await cluster().request('GET', `${base()}/pods/trial`)).status).toBe(404);

    const request = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { audiences: [], expirationSeconds: 600 },
    };
    const { body } = await create('serviceaccounts/hub/token', request);
    const review = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'SelfSubjectReview',
    };
    const self = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
    const answer = await cluster().requestAs(body.status.token, 'POST', self, review);
    expect(answer.body.status.userInfo).toMatchObject({
      username: 'system:serviceaccount:hub-servers:hub',
      groups: expect.arrayContaining(['system:serviceaccounts:hub-servers']),
    });
  });

  test('ends with the service account', async () => {
    const token = await allow('leaver', [{ apiGroups: [''], resources: ['*'], verbs: ['*'] }]);
    expect((await cluster().requestAs(token, 'GET', `${base()}/pods`)).status).toBe(200);
    await cluster().request('DELETE', `${base()}/serviceaccounts/leaver`);
    expect((await cluster().requestAs(token, 'GET', `${base()}/pods`)).status).toBe(401);
  });

  test('is limited to pods that meet the restricted standard', async () => {
    const bare = podManifest(
      'bare',
      { command: ['true'], securityContext: {} },
      { securityContext: {} },
    );
    expect(messageOf(await create('pods', bare))).toBe(
      '403 pods "bare" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "main" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "main" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "main" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "main" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
    );
    const volumes = [{ name: 'host', hostPath: { path: '/' } }];
    const reaching = podManifest('reaching', { command: ['true'] }, { volumes });
    expect(messageOf(await create('pods', reaching))).toMatch(/restricted volume types/);
    const remote = '/api/v1/namespaces/default/pods';
    expect((await cluster().request('POST', remote, bare)).status).toBe(201);
  });

  test('needs a service account that is there', async () => {
    const pod = podManifest('orphan', { command: ['true'] }, { serviceAccountName: 'nobody' });
    expect(messageOf(await create('pods', pod))).toBe(
      '403 pods "orphan" is forbidden: error looking up service account hub-servers/nobody: serviceaccount "nobody" not found',
    );
  });

  test('ends where a quota or a webhook says so', async () => {
    await create('resourcequotas', {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'small' },
      spec: { hard: { pods: '1', 'requests.memory': '1Gi' } },
    });
    const pod = (name: string, memory: string) =>
      podManifest(
        name,
        { command: ['true'], resources: { requests: { memory } } },
        { nodeSelector: { no: 'such' } },
      );
    expect(messageOf(await create('pods', podManifest('silent', { command: ['true'] })))).toBe(
      '403 pods "silent" is forbidden: failed quota: small: must specify requests.memory for: main',
    );
    expect((await create('pods', pod('one', '512Mi'))).status).toBe(201);
    expect(messageOf(await create('pods', pod('two', '768Mi')))).toBe(
      '403 pods "two" is forbidden: exceeded quota: small, requested: pods=1,requests.memory=768Mi, used: pods=1,requests.memory=512Mi, limited: pods=1,requests.memory=1Gi',
    );
    const quota = `${base()}/resourcequotas/small`;
    await expect
      .poll(async () => (await cluster().request('GET', quota)).body.status.used)
      .toEqual({ pods: '1', 'requests.memory': '512Mi' });
    await cluster().request('DELETE', quota);

    const denial = {
      webhook: 'policy.example.org',
      resource: 'pods',
      message: 'no pods on Sunday',
    };
    await cluster().setDenials([denial]);
    expect(messageOf(await create('pods', pod('three', '1Mi')))).toBe(
      '403 admission webhook "policy.example.org" denied the request: no pods on Sunday',
    );
    await cluster().setDenials([]);
    expect((await create('pods', pod('three', '1Mi'))).status).toBe(201);
  });
});
