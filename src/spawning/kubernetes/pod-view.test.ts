import type { V1PodStatus } from '@kubernetes/client-node';
import { describe, expect, test } from 'vitest';
import { hopelessness, progressOf } from './pod-progress.ts';
import { exitOf, hasEnded, viewOf, type WirePod } from './pod-view.ts';
import { parseQuantity } from './quantity.ts';

const metadata = { name: 'hub-ann', namespace: 'servers', uid: 'u1', resourceVersion: '7' };

function podOf(status: object, spec: object = { nodeName: 'node-1' }): WirePod {
  const limits = { memory: '200Mi' };
  const containers = [{ name: 'server', resources: { limits } }];
  return { metadata, spec: { containers, ...spec }, status: status as V1PodStatus };
}

function ended(terminated: object, more: object = {}): WirePod {
  const containerStatuses = [{ name: 'server', state: { terminated } }];
  return podOf({ phase: 'Failed', containerStatuses, ...more });
}

describe('how a server ended', () => {
  test.for([
    [
      'memory',
      ended({ exitCode: 137, reason: 'OOMKilled' }),
      { code: 137, signal: 'SIGKILL', reason: 'out of memory at 200 MiB' },
    ],
    ['exit code', ended({ exitCode: 3, reason: 'Error' }), { code: 3, signal: null }],
    ['signal', ended({ exitCode: 143, reason: 'Error' }), { code: 143, signal: 'SIGTERM' }],
    ['completion', ended({ exitCode: 0, reason: 'Completed' }), { code: 0, signal: null }],
    [
      'eviction',
      podOf({
        phase: 'Failed',
        reason: 'Evicted',
        message: 'The node was low on resource: memory. ',
      }),
      {
        code: null,
        signal: null,
        reason: 'its node evicted it: The node was low on resource: memory',
      },
    ],
    [
      'a drained node',
      ended(
        { exitCode: 143, reason: 'Error' },
        {
          conditions: [
            { type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI' },
          ],
        },
      ),
      { code: 143, signal: 'SIGTERM', reason: 'its node was drained' },
    ],
    [
      'a lost node',
      podOf({
        phase: 'Failed',
        conditions: [
          { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' },
        ],
      }),
      { code: null, signal: null, reason: 'its node node-1 was lost' },
    ],
    [
      'a missing command',
      ended({
        exitCode: 128,
        reason: 'StartError',
        message: 'exec: "no-such-program": executable file not found in $PATH: unknown',
      }),
      { code: 128, signal: null, reason: 'its image has no such command: no-such-program' },
    ],
    [
      'an unknown reason',
      podOf({ phase: 'Failed', reason: 'Strange', message: 'so it is' }),
      { code: null, signal: null, reason: 'its pod failed: Strange: so it is' },
    ],
    [
      'a deletion',
      podOf({ phase: 'Running' }),
      { code: null, signal: null, reason: 'its pod was deleted' },
    ],
  ] as const)('by %s', ([, pod, exit]) => {
    expect(exitOf(viewOf(pod))).toEqual(exit);
  });

  test('is not known while its node does not answer', () => {
    const conditions = (ready: string, containersReady: string) => [
      { type: 'Ready', status: ready },
      { type: 'ContainersReady', status: containersReady },
    ];
    const viewWith = (...states: [string, string]) =>
      viewOf(podOf({ phase: 'Running', conditions: conditions(...states) }));
    const lost = viewWith('False', 'True');
    expect(lost.isLost).toBe(true);
    expect(hasEnded(lost)).toBe(false);
    expect(viewOf(podOf({ phase: 'Unknown' })).isLost).toBe(true);
    expect(viewWith('True', 'True').isLost).toBe(false);
    expect(viewWith('False', 'False').isLost).toBe(false);
  });

  test('of a sidecar is not its own', () => {
    const containerStatuses = [
      { name: 'sidecar', state: { terminated: { exitCode: 1 } } },
      { name: 'server', state: { running: {} } },
    ];
    const view = viewOf(podOf({ phase: 'Running', podIP: '10.0.0.7', containerStatuses }));
    expect(hasEnded(view)).toBe(false);
    expect(view).toMatchObject({ isRunning: true, ip: '10.0.0.7' });
  });
});

const event = (reason: string, message = '', isWarning = false) => ({ reason, message, isWarning });

function unscheduled(message: string, reason = 'Unschedulable'): WirePod {
  const conditions = [{ type: 'PodScheduled', status: 'False', reason, message }];
  return podOf({ phase: 'Pending', conditions }, {});
}

function waiting(reason: string, message = ''): WirePod {
  const containerStatuses = [{ name: 'server', state: { waiting: { reason, message } } }];
  return podOf({ phase: 'Pending', containerStatuses });
}

describe('a start says', () => {
  test.for([
    ['at first', podOf({}, {}), [], 'scheduling', 'Looking for a node.'],
    [
      'without room',
      unscheduled('0/3 nodes are available: 3 Insufficient memory.'),
      [],
      'pending',
      'Waiting for a node with room: 0/3 nodes are available: 3 Insufficient memory.',
    ],
    [
      'without a volume',
      unscheduled('0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.'),
      [event('ProvisioningFailed', 'no volume plugin matched', true)],
      'pending',
      'Waiting for storage: no volume plugin matched.',
    ],
    [
      'while the cluster grows',
      unscheduled('0/3 nodes are available'),
      [event('FailedScheduling'), event('TriggeredScaleUp')],
      'pending',
      'Waiting for a node that is being added.',
    ],
    ['on a node', podOf({}), [], 'starting', 'The node node-1 prepares the server.'],
    [
      'while it pulls',
      waiting('ContainerCreating'),
      [event('Scheduled'), event('Pulling', 'Pulling image "lab:1"')],
      'pulling',
      'Pulling the image lab:1.',
    ],
    [
      'once it has pulled',
      waiting('ContainerCreating'),
      [
        event('Pulling', 'Pulling image "lab:1"'),
        event('Pulled', 'Successfully pulled image "lab:1" in 2s'),
      ],
      'starting',
      'The image lab:1 is there.',
    ],
    [
      'while the registry is away',
      waiting('ImagePullBackOff', 'Back-off pulling image "lab:1"'),
      [event('Failed', 'Failed to pull image "lab:1": dial tcp: connection refused', true)],
      'pulling',
      'The image cannot be pulled yet: Failed to pull image "lab:1": dial tcp: connection refused.',
    ],
    [
      'while a volume is attached',
      waiting('ContainerCreating'),
      [event('FailedAttachVolume', 'Multi-Attach error for volume "pvc-1"', true)],
      'starting',
      'Waiting for storage: Multi-Attach error for volume "pvc-1".',
    ],
  ] as const)('%s', ([, pod, events, phase, message]) => {
    expect(progressOf(viewOf(pod), events)).toMatchObject({ phase, message });
  });

  test.for([
    ['InvalidImageName', '', 'The image lab:1 has a name that no node understands.'],
    [
      'ErrImageNeverPull',
      '',
      'The image lab:1 is not on the node, and none is pulled (pull_policy).',
    ],
    [
      'ErrImagePull',
      'pull access denied, repository does not exist or may require authorization',
      'The image lab:1 is private, or there is none of that name: its registry does not give it without other credentials (pull_secrets).',
    ],
    ['ErrImagePull', 'manifest for lab:1 not found', 'There is no image lab:1 in its registry.'],
    [
      'ErrImagePull',
      'no match for platform in manifest: not found',
      'The image lab:1 does not exist for the processor architecture of the node.',
    ],
    [
      'CreateContainerConfigError',
      'container has runAsNonRoot and image will run as root',
      'The server is not started: it would run as root in lab:1.',
    ],
    [
      'CreateContainerConfigError',
      'container has runAsNonRoot and image has non-numeric user (jovyan), cannot verify user is non-root',
      'The server is not started: the user of the image lab:1 has a name, not a number.',
    ],
    [
      'CreateContainerError',
      'no space left',
      'The node cannot create the container: no space left.',
    ],
  ] as const)('why it is hopeless: %s, %s', ([reason, message, sentence]) => {
    expect(hopelessness(viewOf(waiting(reason, message)), [], 'lab:1')?.sentence).toEqual(sentence);
  });

  test('nothing of the sort for what may pass', () => {
    for (const pod of [
      waiting('ErrImagePull', 'dial tcp: connection refused'),
      waiting('CreateContainerConfigError', 'secret "x" not found'),
      waiting('ContainerCreating'),
    ]) {
      expect(hopelessness(viewOf(pod), [], 'lab:1')).toBeUndefined();
    }
  });
});

test.for([
  ['200Mi', 200 * 1024 ** 2],
  ['1.5G', 1.5e9],
  ['250m', 0.25],
  ['1e3', 1000],
  ['7', 7],
  ['much', undefined],
  ['-1', undefined],
  ['', undefined],
] as const)('the quantity %s is %s', ([text, value]) => {
  expect(parseQuantity(text)).toBe(value);
});
