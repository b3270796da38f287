import { describe, expect, test } from 'vitest';
import { ApiRefusal, explainRefusal } from './api-errors.ts';

/** Words of real API servers. */
const words = [
  [
    'pods "hub-ann" is forbidden: exceeded quota: team, requested: limits.memory=1Gi, used: limits.memory=4Gi, limited: limits.memory=4Gi',
    'The quota team of the namespace is used up: limits.memory=1Gi asked for, limits.memory=4Gi of limits.memory=4Gi in use.',
  ],
  [
    'pods "hub-ann" is forbidden: failed quota: team: must specify limits.memory for: server',
    'The quota team of the namespace admits only servers with limits: limits.memory for: server is missing.',
  ],
  [
    'pods "hub-ann" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "server" must set securityContext.allowPrivilegeEscalation=false)',
    'The namespace admits only pods that keep the security standard restricted:latest: allowPrivilegeEscalation != false (container "server" must set securityContext.allowPrivilegeEscalation=false).',
  ],
  [
    'admission webhook "policy.example.org" denied the request: images must be signed',
    'The admission webhook policy.example.org denied the server: images must be signed.',
  ],
  [
    "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'images' with binding 'all' denied request: no",
    'The admission policy images denied the server: no.',
  ],
  [
    'pods "x" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi',
    'The namespace allows at most 1Gi of memory for a server; its limit is 2Gi.',
  ],
  [
    'pods "x" is forbidden: error looking up service account lab/nobody: serviceaccount "nobody" not found',
    'The namespace has no service account nobody.',
  ],
  [
    'pods "x" is forbidden: no PriorityClass with name urgent was found',
    'The cluster has no PriorityClass urgent.',
  ],
  ['namespaces "nowhere" not found', 'The cluster has no namespace nowhere.'],
  [
    'pods is forbidden: User "system:serviceaccount:lab:hub" cannot create resource "pods" in API group "" in the namespace "lab"',
    "The hub's account system:serviceaccount:lab:hub may not create pods in the namespace of the servers.",
  ],
  [
    'Pod "x" is invalid: spec.containers[0].image: Required value',
    'Kubernetes refused the pod: Pod "x" is invalid: spec.containers[0].image: Required value.',
  ],
] as const;

describe('a refusal of the Kubernetes API', () => {
  test.for(words)('%s is a sentence for the user', ([message, sentence]) => {
    const refusal = new ApiRefusal(403, { message, reason: 'Forbidden' });
    expect(explainRefusal(refusal, 'the pod').message).toBe(sentence);
  });

  test('of the credentials says so', () => {
    expect(
      explainRefusal(new ApiRefusal(401, { message: 'Unauthorized' }), 'the pod').message,
    ).toBe("Kubernetes does not accept the hub's credentials.");
  });
});
