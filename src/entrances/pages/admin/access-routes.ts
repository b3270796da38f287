import { accessKinds, placeKinds } from '../../../identity/rbac/role.ts';
import { HubError } from '../../../platform/errors.ts';
import { text } from '../../../platform/texts/text.ts';
import type { BoundPages, ModelOf, Shown } from '../forms/binding.ts';
import { namesIn } from '../forms/names-in.ts';
import { type AccessView, type GiveAccessFields, giveAccessPage } from './access-page.ts';
import { membersOf } from './role-routes.ts';

/** `/hub/admin/give-access`: rights by choices, from the pages of users, groups and services. */
export function adminAccessRoutes({ page, form, pages }: BoundPages): void {
  const { urls } = pages;

  const show = page('/admin/give-access', 'viewGiveAccess', ({ layout, model, failure }) => {
    const typed = failure === undefined ? fieldsFor(model.query) : fieldsIn(failure.sent);
    return giveAccessPage({
      ...model,
      layout,
      typed,
      cancelUrl: pages.ownPathOf(typed.return_to) ?? urls.adminRoles,
      problem: failure?.problem,
    });
  });

  /** What the page begins with: one who gets access, or a place. */
  function fieldsFor(query: Readonly<Record<'user' | 'group' | 'service', string>>) {
    const { user, group, service } = query;
    const [where, kind, url] =
      service !== ''
        ? ['service', 'service-manager', urls.adminService(service)]
        : ['group', 'course-assistant', group !== '' && urls.adminGroup(group)];
    return {
      holders: 'user',
      names: user,
      kind,
      scopes: '',
      where,
      place: group || service,
      return_to: user === '' ? url || '' : urls.adminUser(user),
    };
  }

  form('/admin/give-access', 'giveAccess', {
    body(sent) {
      const { holders, kind, scopes, where, place } = fieldsIn(sent);
      return {
        ...membersOf(holders, namesIn(sent)),
        kind: choiceOf('kind', accessKinds, kind),
        scopes: scopes.split(/[\s,]+/).filter((scope) => scope !== ''),
        place: { kind: choiceOf('where', placeKinds, where), name: place },
      };
    },
    done: ({ sent, result: { role } }) => ({
      to: pages.ownPathOf(fieldsIn(sent).return_to) ?? urls.adminRole(role),
      say: text`Access is given to ${namesIn(sent).join(', ')}.`,
    }),
    again: show,
  });
}

/** What the page of a group or service shows of who has access to it. */
export function accessViewOf(
  access: ModelOf<'viewGroup'>['access'],
  { may, giveUrl }: { readonly may: Shown<unknown>['may']; readonly giveUrl: string },
): AccessView | undefined {
  return (
    access && {
      ...access,
      entries: access.entries.map((entry) => ({
        ...entry,
        mayTakeAway: entry.isOfRuntime && may('takeRoleAway', { role: entry.role.name }),
      })),
      giveUrl: may('giveAccess') ? giveUrl : undefined,
    }
  );
}

function fieldsIn(sent: URLSearchParams): GiveAccessFields {
  const field = (name: keyof GiveAccessFields) => sent.get(name) ?? '';
  return {
    holders: field('holders'),
    names: field('names'),
    kind: field('kind'),
    scopes: field('scopes'),
    where: field('where'),
    place: field('place'),
    return_to: field('return_to'),
  };
}

function choiceOf<Choice extends string>(
  name: keyof GiveAccessFields,
  choices: readonly Choice[],
  sent: string,
): Choice {
  const choice = choices.find((each) => each === sent);
  if (choice !== undefined) return choice;
  const problem = text`Choose what is given, and where.`;
  throw new HubError('bad_request', problem, { field: { name, problem } });
}
