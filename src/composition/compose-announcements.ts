import { type Announcements, createAnnouncements } from '../entrances/pages/announcements.ts';
import type { Foundation } from './foundation.ts';
import type { Site } from './site.ts';

/** What the operator tells all users; error pages have it as it was known last. */
export async function composeAnnouncements(
  { config, database, stores, log, disposables }: Foundation,
  site: Pick<Site, 'urls' | 'announced'>,
): Promise<Announcements> {
  const announcements = createAnnouncements({
    hubPath: site.urls.hub,
    config: config.Hub,
    notices: stores.notices,
    now: database.now,
  });
  disposables.defer(
    database.onChange(({ kind }) => {
      if (kind !== 'notices_changed' && kind !== 'all') return;
      announcements
        .refresh()
        .catch((error: unknown) => log.debug({ err: error }, 'announcements cannot be read'));
    }),
  );
  await announcements.refresh();
  site.announced.follow(announcements.everywhere, database.now);
  return announcements;
}
