import { expect, test } from 'vitest';
import type { Notices } from '../../cluster/notices/notice-store.ts';
import { type AnnouncementConfig, createAnnouncements } from './announcements.ts';

const config: AnnouncementConfig = {
  announcement: undefined,
  announcement_login: undefined,
  announcement_home: undefined,
  announcement_spawn: undefined,
  announcement_logout: undefined,
};

test('tells when something else is announced, not whenever it may be', async () => {
  let notices: Notices = {};
  const announcements = createAnnouncements({
    hubPath: '/hub/',
    config,
    notices: { current: async () => notices },
    now: () => 0,
  });
  await announcements.refresh();
  const reported: unknown[] = [];
  announcements.onChange(() => reported.push(announcements.everywhere().announcement?.text));
  await announcements.refresh();
  announcements.update({ ...config, announcement_login: 'On one page.' });
  expect(reported).toEqual([]);
  notices = { announcement: { text: 'Down on Friday.', level: 'warning' } };
  // A page may have read it before.
  await announcements.at('/hub/home');
  await announcements.refresh();
  await announcements.refresh();
  expect(reported).toEqual(['Down on Friday.']);
  notices = {};
  announcements.update({ ...config, announcement: 'Of the file.' });
  await announcements.refresh();
  expect(reported).toEqual(['Down on Friday.', 'Of the file.']);
});
