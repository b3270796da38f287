import { localizedPhrase, text } from '../../../platform/texts/text.ts';
import { hasChoices } from '../../../workloads/servers/spawn-options.ts';
import type { UserServers } from '../../../workloads/servers/user-servers.ts';
import { confirmPage } from '../errors/confirm-page.ts';
import type { BoundPages, ModelOf, Shown, Visitor } from '../forms/binding.ts';
import { notRunningPage } from './not-running-page.ts';
import { stoppedByOf, targetName } from './server-views.ts';
import { joinForms, submittedOptions, valuesInForm } from './spawn-form.ts';
import { spawnOptionsPage } from './spawn-options-page.ts';
import { type StandingDeps, showStanding } from './standing.ts';

/** One's own default server, that of another user, and named ones. */
const places = [
  ['', 'DefaultServer'],
  ['/{name}', 'DefaultServer'],
  ['/{name}/{server}', 'NamedServer'],
] as const;

/** The pages on which servers are started, followed, stopped and deleted. */
export function spawnRoutes(
  bound: BoundPages,
  deps: StandingDeps & {
    readonly servers: Pick<UserServers, 'choicesFor'>;
    /** `Hub.implicit_spawn_seconds`. */
    readonly implicitSpawnSeconds: number;
  },
): void {
  const { page, form, pages } = bound;
  const { urls } = pages;

  /** The page on which the button stood, when it is one of this hub. */
  const returnTo = (form: URLSearchParams): string | undefined =>
    pages.nextOf(new URLSearchParams({ next: form.get('return_to') ?? '' }));

  const pendingUrl = (userName: string, serverName: string | undefined, next?: string): string => {
    const url = urls.spawnPending(userName, serverName);
    return next === undefined ? url : `${url}?next=${encodeURIComponent(next)}`;
  };

  function drawOptions(shown: Shown<ModelOf<'viewStart'>>, next: string | undefined) {
    const { layout, model, params, search, failure, ctx } = shown;
    const { user, server, choices } = model;
    const sent = failure?.sent ?? pages.takeTyped(ctx, ctx.path) ?? search;
    const values = submittedOptions(sent, choices) ?? toTexts(server?.userOptions ?? {});
    return spawnOptionsPage({
      layout,
      server: {
        userName: user.name,
        name: params['server'] ?? '',
        displayName: server?.displayName,
      },
      profiles: choices.profiles.map((profile, index) => ({
        name: profile.name,
        displayName: localizedPhrase(profile.display_name ?? profile.name),
        description: localizedPhrase(profile.description),
        isDefault: profile.default,
        prices: model.prices[index],
      })),
      currency: model.currency,
      form: joinForms(choices),
      values: valuesInForm(choices, values),
      chosenProfile: values['profile'],
      error: failure?.problem,
      next,
    });
  }

  for (const [path, kind] of places) {
    const params = ({ login }: Visitor): Readonly<Record<string, string>> =>
      path === '' ? { name: login.user.name } : {};
    const paramsOfForm = (_sent: URLSearchParams, visitor: Visitor) => params(visitor);

    const showStart = page(
      `/spawn${path}`,
      'viewStart',
      (shown) => {
        const { layout, model, visitor, failure } = shown;
        const { user, server, choices } = model;
        const serverName = shown.params['server'] ?? '';
        const next = pages.nextOf(failure?.sent ?? shown.search);
        if (server !== undefined && server.state !== 'stopped')
          return { redirect: pendingUrl(user.name, serverName, next) };
        if (hasChoices(choices)) return drawOptions(shown, next);
        return notRunningPage({
          layout,
          server: { userName: user.name, name: serverName, displayName: server?.displayName },
          failure: server?.failure,
          stoppedBy: server && stoppedByOf(server),
          problem: failure?.problem,
          mayStart: true,
          hasSpawnOptions: false,
          next,
          // Opening another user's server must not start it.
          startSeconds: visitor.login.user.id === user.id ? deps.implicitSpawnSeconds : 0,
        });
      },
      // The fields of the form can be filled in by the address.
      { params, query: 'any' },
    );

    form(`/spawn${path}`, `beginStartOf${kind}` as const, {
      params: paramsOfForm,
      body: async (sent, { name = '' }) => ({
        user_options: submittedOptions(sent, await deps.servers.choicesFor(name)),
      }),
      done({ params: target, sent, visitor, result: { isNew } }) {
        const to = isNew ? returnTo(sent) : undefined;
        if (to === undefined)
          return {
            redirect: pendingUrl(target['name'] ?? '', target['server'], pages.nextOf(sent)),
          };
        return { to, say: text`${targetName(visitor.login.user.name, target)} is starting.` };
      },
      again: showStart,
    });

    page(
      `/spawn-pending${path}`,
      'viewProgress',
      (shown) => showStanding(shown, pages, deps, { next: pages.nextOf(shown.search) }),
      { params, query: ['next'] },
    );

    form(`/stop${path}`, `beginStopOf${kind}` as const, {
      params: paramsOfForm,
      // The page that follows shows how it goes on; a server that hangs must not hold the form.
      done({ params: target, sent, visitor }) {
        const { name: own } = visitor.login.user;
        const to = returnTo(sent);
        if (to !== undefined) return { to, say: text`${targetName(own, target)} is stopping.` };
        return { redirect: target['name'] === own ? urls.home : urls.adminUsers };
      },
    });

    form(`/extend${path}`, `extend${kind}` as const, {
      params: paramsOfForm,
      body: (sent) => {
        const seconds = sent.get('keep');
        return { keep_running_seconds: seconds === null ? undefined : Number(seconds) };
      },
      done: ({ sent }) => ({
        to: returnTo(sent) ?? urls.home,
        say:
          sent.get('keep') === '0'
            ? text`The server is kept running no longer than it is used.`
            : text`The server keeps running.`,
      }),
      mistaken: (problem, sent) => ({
        to: returnTo(sent) ?? urls.home,
        say: problem,
        kind: 'bad',
      }),
    });
  }

  page(
    '/delete-server/{name}/{server}',
    'viewServerDeletion',
    ({ layout, model: { userName }, params: { server = '' } }) =>
      confirmPage({
        layout,
        title: text`Delete the server ${server}?`,
        consequences: [
          text`It is stopped, and its settings are forgotten. Files in its folder stay.`,
        ],
        label: text`Delete server`,
        action: urls.deleteServer(userName, server),
        cancelUrl: urls.server(userName, server),
      }),
  );

  form('/delete-server/{name}/{server}', 'stopNamedServer', {
    body: () => ({ remove: true }),
    done({ params, visitor, result }) {
      const { name = '', server = '' } = params;
      const { name: own } = visitor.login.user;
      return {
        to: name === own ? urls.home : urls.adminUser(name),
        // One that takes long to stop is deleted after that.
        say:
          result === undefined
            ? text`The server ${server} is deleted.`
            : text`${targetName(own, params)} is stopping.`,
      };
    },
  });
}

function toTexts(options: Readonly<Record<string, unknown>>): Record<string, string> {
  const simple = Object.entries(options).filter(([, value]) => typeof value !== 'object');
  return Object.fromEntries(simple.map(([name, value]) => [name, String(value)]));
}
