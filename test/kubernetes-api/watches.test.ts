import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { createInterface } from 'node:readline';
import { describe, expect, test } from 'vitest';
import { canServeKubernetes, useKubernetesApi } from '../support/kubernetes-api.ts';
import { until } from '../support/test-hub.ts';

interface WatchEvent {
  readonly type: string;
  // biome-ignore lint/suspicious/noExplicitAny: the objects of the API, whose fields tests pick out.
  readonly object: any;
}

interface OpenWatch {
  readonly status: number;
  readonly events: WatchEvent[];
  /** Whether the stream has ended, and whether it ended as it should. */
  state: 'open' | 'ended' | 'broken';
}

describe.skipIf(!canServeKubernetes())('watches of the small Kubernetes', () => {
  const cluster = useKubernetesApi();
  const path = () => `/api/v1/namespaces/${cluster().namespace}/configmaps`;

  async function watch(query: string): Promise<OpenWatch> {
    const outgoing = request(new URL(`${path()}?watch=true&${query}`, cluster().url), {
      ca: readFileSync(cluster().caFile),
      headers: { authorization: `Bearer ${cluster().adminToken}` },
      agent: false,
    }).end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    const watched: OpenWatch = { status: response.statusCode ?? 0, events: [], state: 'open' };
    response.once('end', () => {
      watched.state = 'ended';
    });
    response.once('error', () => {
      watched.state = 'broken';
    });
    const lines = createInterface({ input: response });
    lines.on('error', () => undefined);
    lines.on('line', (line) => watched.events.push(JSON.parse(line)));
    return watched;
  }

  const create = (name: string, labels = {}) =>
    cluster().request('POST', path(), {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, labels },
    });
  const label = (name: string, labels: object) =>
    cluster().request(
      'PATCH',
      `${path()}/${name}`,
      { metadata: { labels } },
      'application/merge-patch+json',
    );
  const version = async () =>
    (await cluster().request('GET', path())).body.metadata.resourceVersion as string;
  const seen = ({ events }: OpenWatch) =>
    events
      .filter(({ type }) => type !== 'BOOKMARK')
      .map(({ type, object }) => `${type} ${object.metadata?.name}`);
  const untilSeen = (watched: OpenWatch, last: string) =>
    until(() => seen(watched).includes(last), last);

  test('tell what happened since a version, in order, by selector', async () => {
    const from = await version();
    await create('early', { team: 'red' });
    const watched = await watch(`resourceVersion=${from}&labelSelector=team%3Dred`);
    await create('other', { team: 'blue' });
    await label('other', { team: 'red' });
    await label('early', { team: 'green' });
    await label('other', { more: 'x' });
    await cluster().request('DELETE', `${path()}/other`);
    await untilSeen(watched, 'DELETED other');
    expect(seen(watched)).toEqual([
      'ADDED early',
      'ADDED other',
      'DELETED early',
      'MODIFIED other',
      'DELETED other',
    ]);
    const versions = watched.events.map(({ object }) => Number(object.metadata.resourceVersion));
    expect(versions).toEqual(versions.toSorted((one, other) => one - other));
  });

  test('without a version begin with what there is', async () => {
    await create('there');
    const watched = await watch('fieldSelector=metadata.name%3Dthere');
    await untilSeen(watched, 'ADDED there');
    const initial = await watch('sendInitialEvents=true&allowWatchBookmarks=true');
    await until(() => initial.events.some(({ type }) => type === 'BOOKMARK'), 'a bookmark');
    const bookmark = initial.events.at(-1);
    expect(bookmark?.object).toMatchObject({
      kind: 'ConfigMap',
      metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } },
    });
  });

  test('send bookmarks, and end after their time', async () => {
    const from = await version();
    const watched = await watch(
      `resourceVersion=${from}&allowWatchBookmarks=true&timeoutSeconds=1`,
    );
    await until(() => watched.state !== 'open', 'it ends');
    expect(watched.state).toBe('ended');
    expect(watched.events.at(-1)).toMatchObject({
      type: 'BOOKMARK',
      object: { kind: 'ConfigMap', metadata: { resourceVersion: expect.stringMatching(/^\d+$/) } },
    });
  });

  test('are too old after the history was forgotten, by an event or by the status', async () => {
    const from = await version();
    await cluster().compact();
    const reported = await watch(`resourceVersion=${from}`);
    await until(() => reported.state === 'ended', 'it ends');
    expect(reported.status).toBe(200);
    expect(reported.events).toEqual([
      {
        type: 'ERROR',
        object: expect.objectContaining({
          kind: 'Status',
          code: 410,
          reason: 'Expired',
          message: expect.stringMatching(/^too old resource version: \d+ \(\d+\)$/),
        }),
      },
    ]);
    await cluster().compact({ refusesWithStatus: true });
    expect((await watch(`resourceVersion=${from}`)).status).toBe(410);
    expect((await watch(`resourceVersion=${await version()}`)).status).toBe(200);
    await cluster().compact({ refusesWithStatus: false });
  });

  test('are cut or expired when a test says so', async () => {
    const [cut, expired] = [await watch(''), await watch('')];
    expect(await cluster().openWatches()).toBeGreaterThanOrEqual(2);
    await cluster().expireWatches();
    await until(() => expired.state === 'ended' && cut.state === 'ended', 'both end');
    expect(expired.events.at(-1)?.type).toBe('ERROR');
    const next = await watch('');
    await cluster().cutWatches();
    await until(() => next.state === 'broken', 'it breaks');
    await until(async () => (await cluster().openWatches()) === 0, 'none is open');
  });
});
