import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { oneOfVersions } from '../../platform/crypto/version.ts';
import { createAuditStore } from '../../platform/store/audit-store.ts';
import {
  createNoticeStore,
  type NoticeStore,
  versionOfAnnouncement,
  versionOfMaintenance,
} from './notice-store.ts';

describeEachDatabase('the store of notices', (open) => {
  test('tells what is announced to every process, until its end', async () => {
    const database = await open();
    let ahead = 0;
    const now = () => Date.now() + ahead;
    const store = createNoticeStore({ ...database, now });
    const other = createNoticeStore({ ...database, now });
    expect(await other.current()).toEqual({});
    const until = new Date(Date.now() + 3_600_000);
    const announcement = { text: 'Hello.', level: 'info', pages: ['home'], until } as const;
    await store.announce(announcement);
    expect((await other.current()).announcement).toEqual(announcement);
    await store.announce({ text: 'Again.', level: 'warning' });
    expect((await other.current()).announcement).toEqual({ text: 'Again.', level: 'warning' });
    expect(await other.withdraw()).toBe(true);
    expect(await store.withdraw()).toBe(false);
    expect(await store.current()).toEqual({});

    await store.announce(announcement);
    ahead = 3_600_001;
    expect(await other.current()).toEqual({});
  });

  test('refuses starts during maintenance, and tells until when', async () => {
    const database = await open();
    const time = Date.now();
    const store = createNoticeStore({ ...database, now: () => time });
    await store.requireNoMaintenance();
    const since = new Date(time - 1_000);
    const until = new Date(time + 90_000);
    await store.beginMaintenance({ text: 'New disks.', since, until });
    expect((await store.current()).maintenance).toEqual({ text: 'New disks.', since, until });
    const refusal: unknown = await store.requireNoMaintenance().catch((error: unknown) => error);
    expect(refusal).toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining(`until ${until.toISOString().slice(0, 10)}`),
      hint: expect.stringContaining('New disks.'),
      retryAfterSeconds: 90,
    });
    expect(await store.endMaintenance()).toBe(true);
    await store.requireNoMaintenance();
  });

  test('begins maintenance by itself at its time, in every process and after a restart', async () => {
    const database = await open();
    let ahead = 0;
    const now = () => Date.now() + ahead;
    const later = (ms: number) => new Date(Date.now() + ms);
    const store = createNoticeStore({ ...database, now });
    const other = createNoticeStore({ ...database, now });
    await store.beginMaintenance({ text: '', since: later(3_600_000), until: later(7_200_000) });
    for (const each of [store, other]) await each.requireNoMaintenance();
    ahead = 3_600_001;
    for (const each of [store, other, createNoticeStore({ ...database, now })])
      await expect(each.requireNoMaintenance()).rejects.toMatchObject({ code: 'unavailable' });
    ahead = 7_200_001;
    for (const each of [store, other]) await each.requireNoMaintenance();
  });

  test('of two changes to one version makes one, and tells the other', async () => {
    const database = await open();
    const stores = [createNoticeStore(database), createNoticeStore(database)];
    const [store] = stores as [NoticeStore];
    const reported = { status: 'rejected', reason: { code: 'precondition_failed' } };
    const outcomes = async (change: (store: NoticeStore, index: number) => Promise<unknown>) =>
      (await Promise.allSettled(stores.map(change))).toSorted((one) =>
        one.status === 'fulfilled' ? -1 : 1,
      );
    const none = oneOfVersions([versionOfAnnouncement(undefined)]);
    const texts = ['Hello.', 'Welcome.'] as const;
    const announced = await outcomes((each, index) =>
      each.announce({ text: texts[index] ?? '', level: 'info' }, none),
    );
    expect(announced).toMatchObject([{ status: 'fulfilled' }, reported]);
    const { announcement } = await store.current();
    expect(texts).toContain(announcement?.text);
    await expect(store.withdraw(none)).rejects.toMatchObject(reported.reason);
    expect((await store.current()).announcement).toEqual(announcement);
    const drawn = oneOfVersions([versionOfAnnouncement(announcement)]);
    const withdrawn = await outcomes((each) => each.withdraw(drawn));
    expect(withdrawn).toMatchObject([{ status: 'fulfilled', value: true }, reported]);

    const noMaintenance = oneOfVersions([versionOfMaintenance(undefined)]);
    const since = new Date();
    const begun = await outcomes((each, index) =>
      each.beginMaintenance({ text: texts[index] ?? '', since }, noMaintenance),
    );
    expect(begun).toMatchObject([{ status: 'fulfilled' }, reported]);
    await expect(store.endMaintenance(noMaintenance)).rejects.toMatchObject(reported.reason);
    expect((await store.current()).maintenance).toBeDefined();
  });

  test('notes each deed in the audit log', async () => {
    const database = await open();
    const store = createNoticeStore(database);
    await store.announce({ text: 'Hello.', level: 'info' });
    await store.beginMaintenance({ text: '', since: new Date(Date.now() - 1_000) });
    await store.withdraw();
    await store.endMaintenance();
    const { entries } = await createAuditStore(database).list({ filter: {}, limit: 10 });
    expect(entries.map(({ action }) => action).toReversed()).toEqual([
      'announcement.set',
      'maintenance.begin',
      'announcement.remove',
      'maintenance.end',
    ]);
  });
});
