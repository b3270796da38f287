import { describe, expect, test } from 'vitest';
import { applyPatch, reservedPaths } from './pod-patch.ts';

const pod = {
  metadata: { labels: { a: '1' } },
  spec: {
    nodeSelector: { disk: 'ssd' },
    containers: [
      { name: 'server', image: 'lab:1', volumeMounts: [{ name: 'x', mountPath: '/x' }] },
    ],
    volumes: [{ name: 'x', emptyDir: {} }],
    tolerations: [{ key: 'a' }],
  },
};

describe('a patch of a pod', () => {
  test('merges objects, replaces the rest and removes what is null', () => {
    const patch = { metadata: { labels: { b: '2' } }, spec: { nodeSelector: null, priority: 5 } };
    expect(applyPatch(pod, patch, 'merge')).toEqual({
      metadata: { labels: { a: '1', b: '2' } },
      spec: {
        containers: pod.spec.containers,
        volumes: pod.spec.volumes,
        tolerations: pod.spec.tolerations,
        priority: 5,
      },
    });
    expect(pod.spec.nodeSelector).toEqual({ disk: 'ssd' });
  });

  test('merges lists by their keys when it is strategic', () => {
    const patch = {
      spec: {
        containers: [
          { name: 'server', volumeMounts: [{ name: 'y', mountPath: '/y' }] },
          { name: 'sidecar', image: 'other:1' },
        ],
        volumes: [
          { name: 'x', $patch: 'delete' },
          { name: 'y', emptyDir: {} },
        ],
        tolerations: [{ key: 'b' }],
      },
    };
    expect(applyPatch(pod, patch, 'strategic')['spec']).toEqual({
      nodeSelector: { disk: 'ssd' },
      containers: [
        {
          name: 'server',
          image: 'lab:1',
          volumeMounts: [
            { name: 'x', mountPath: '/x' },
            { name: 'y', mountPath: '/y' },
          ],
        },
        { name: 'sidecar', image: 'other:1' },
      ],
      volumes: [{ name: 'y', emptyDir: {} }],
      tolerations: [{ key: 'b' }],
    });
  });

  test('replaces lists when it is a merge patch', () => {
    const patch = { spec: { volumes: [{ name: 'y' }] } };
    expect(applyPatch(pod, patch, 'merge')['spec']).toMatchObject({ volumes: [{ name: 'y' }] });
  });

  test('cannot change the prototype of what it is merged into', () => {
    const patch = JSON.parse('{"spec": {"__proto__": {"hostNetwork": true}}}');
    const { spec } = applyPatch(pod, patch, 'merge');
    expect(Object.getPrototypeOf(spec)).toBe(Object.prototype);
  });

  test('may not set what the hub goes by', () => {
    expect(
      reservedPaths({
        kind: 'Job',
        metadata: { name: 'x', labels: { 'hub/server-id': 'y', team: 'z' }, annotations: null },
        spec: {
          restartPolicy: 'Always',
          containers: [
            { name: 'sidecar', image: 'free' },
            { name: 'server', image: 'evil', resources: {} },
          ],
        },
      }),
    ).toEqual([
      ['kind'],
      ['metadata', 'name'],
      ['metadata', 'labels', 'hub/server-id'],
      ['metadata', 'annotations'],
      ['spec', 'restartPolicy'],
      ['spec', 'containers', 1, 'image'],
    ]);
    expect(reservedPaths({ spec: { containers: null }, metadata: 7 })).toEqual([
      ['metadata'],
      ['spec', 'containers'],
    ]);
  });
});
