import type Router from '@koa/router';
import type { Context } from 'koa';
import { HubError } from '../../errors.ts';
import { mayStartInMaintenance } from '../../servers/maintenance.ts';
import type { ProgressElsewhere } from '../../servers/progress-elsewhere.ts';
import { type Server, unreachableSince } from '../../servers/server.ts';
import type { ServerLifecycle } from '../../servers/server-lifecycle.ts';
import type { ServerOutput } from '../../servers/server-output.ts';
import type { ServerStore } from '../../servers/server-store.ts';
import { hasChoices } from '../../servers/spawn-options.ts';
import type { StartTimes } from '../../servers/start-times-store.ts';
import type { UserServers } from '../../servers/user-servers.ts';
import { ownPhrase } from '../../texts/own-text.ts';
import { type Phrase, type Text, text, translated } from '../../texts/text.ts';
import type { User } from '../../users/user-store.ts';
import { confirmPage } from '../errors/confirm-page.ts';
import { leadOn } from '../login/interstitial-redirect.ts';
import type { PageContext } from '../page-context.ts';
import { withHint } from '../problem-of.ts';
import type { ShowHome } from './home-routes.ts';
import { notRunningPage } from './not-running-page.ts';
import { type FindServerTarget, targetName } from './server-target.ts';
import { stoppedByOf } from './server-views.ts';
import { joinForms, submittedOptions, valuesInForm } from './spawn-form.ts';
import { spawnOptionsPage } from './spawn-options-page.ts';
import { spawnPendingPage, startLines, stopPendingPage } from './spawn-pending-page.ts';
import { unreachablePage } from './unreachable-page.ts';

interface SpawnRouteDeps {
  readonly pages: PageContext;
  readonly apiPath: string;
  readonly store: ServerStore;
  readonly startTimes: StartTimes;
  readonly servers: UserServers;
  readonly lifecycle: ServerLifecycle;
  readonly progressElsewhere: Pick<ProgressElsewhere, 'soFar'>;
  readonly serverOutput: ServerOutput;
}

interface Target {
  readonly user: User;
  readonly serverName: string;
}

/** The pages on which servers are started, followed and stopped. */
export function spawnRoutes(
  router: Router,
  deps: SpawnRouteDeps & {
    readonly showHome: ShowHome;
    readonly findTarget: FindServerTarget;
    /** `Hub.implicit_spawn_seconds`. */
    readonly implicitSpawnSeconds: number;
  },
): void {
  const { pages, findTarget, store, servers } = deps;

  /** The page on which the button stood, when it is one of this hub. */
  const returnTo = (form: URLSearchParams): string | undefined =>
    pages.nextOf(new URLSearchParams({ next: form.get('return_to') ?? '' }));

  const tell = (ctx: Context, url: string, told: Text) =>
    pages.redirectWithNotice(ctx, url, { kind: 'good', text: told });

  async function showOptions(
    ctx: Context,
    target: Target,
    rest: { error?: Phrase; values?: Record<string, string> },
  ): Promise<void> {
    const { user, serverName } = target;
    const server = await store.find(user.name, serverName);
    const choices = await servers.choicesFor(user.name);
    const query = new URLSearchParams(ctx.querystring);
    const typed = pages.takeTyped(ctx, ctx.path);
    const values =
      rest.values ??
      submittedOptions(typed ?? query, choices) ??
      toTexts(server?.userOptions ?? {});
    pages.send(
      ctx,
      spawnOptionsPage({
        layout: await pages.formLayoutFor(ctx),
        server: { userName: user.name, name: serverName, displayName: server?.displayName },
        profiles: choices.profiles.map((profile) => ({
          name: profile.name,
          displayName: ownPhrase(profile.display_name ?? profile.name),
          description: ownPhrase(profile.description),
          isDefault: profile.default,
        })),
        form: joinForms(choices),
        values: valuesInForm(choices, values),
        chosenProfile: values['profile'],
        error: rest.error,
        next: pages.nextOf(query),
      }),
      rest.error === undefined ? 200 : 400,
    );
  }

  const show = pages.loggedIn(async (ctx, login) => {
    const target = await findTarget(ctx, login, 'start:servers');
    const server = await store.find(target.user.name, target.serverName);
    const next = pages.nextOf(new URLSearchParams(ctx.querystring));
    if (server !== undefined && server.state !== 'stopped') {
      ctx.redirect(pendingUrl(pages, target, next));
      return;
    }
    if (hasChoices(await servers.choicesFor(target.user.name))) return showOptions(ctx, target, {});
    pages.send(
      ctx,
      notRunningPage({
        layout: await pages.formLayoutFor(ctx),
        server: {
          userName: target.user.name,
          name: target.serverName,
          displayName: server?.displayName,
        },
        failure: failureOf(server),
        stoppedBy: server && stoppedByOf(server),
        mayStart: true,
        hasSpawnOptions: false,
        next,
        // Opening another user's server must not start it.
        startSeconds: login.user.id === target.user.id ? deps.implicitSpawnSeconds : 0,
      }),
    );
  });

  const start = pages.loggedIn(async (ctx, login) => {
    const target = await findTarget(ctx, login, 'start:servers');
    const form = await pages.readForm(ctx);
    const options = submittedOptions(form, await servers.choicesFor(target.user.name));
    try {
      await servers.start({
        ...target,
        userOptions: options,
        mayStartInMaintenance: mayStartInMaintenance(await pages.callerOf(login)),
      });
    } catch (error) {
      const isChoiceWrong =
        error instanceof HubError && error.code === 'bad_request' && options !== undefined;
      const server = await store.find(target.user.name, target.serverName);
      if (server !== undefined && server.state !== 'stopped') {
        // Two browsers pressed start together: both may watch the one start.
        ctx.redirect(pendingUrl(pages, target, pages.nextOf(form)));
        return;
      }
      if (!isChoiceWrong) throw error;
      await showOptions(ctx, target, {
        error: translated(error.shown.message),
        values: toTexts(options),
      });
      return;
    }
    const back = returnTo(form);
    if (back !== undefined) return tell(ctx, back, text`${targetName(login, target)} is starting.`);
    ctx.redirect(pendingUrl(pages, target, pages.nextOf(form)));
    ctx.status = 303;
  });

  const showPending = pages.loggedIn(async (ctx, login) => {
    const target = await findTarget(ctx, login, 'read:servers');
    const next = pages.nextOf(new URLSearchParams(ctx.querystring));
    const mayReadOutput = target.may('access:servers');
    await showServerState(ctx, deps, target, { next, mayStart: true, mayReadOutput });
  });

  const stop = pages.loggedIn(async (ctx, login) => {
    const target = await findTarget(ctx, login, 'delete:servers');
    const { user, serverName } = target;
    const form = await pages.readForm(ctx);
    // The page that follows shows how it goes on; a server that hangs must not hold the form.
    await servers.stop(user.name, serverName, { kind: 'user', name: login.user.name });
    const back = returnTo(form);
    if (back !== undefined) return tell(ctx, back, text`${targetName(login, target)} is stopping.`);
    ctx.redirect(login.user.id === user.id ? pages.urls.home : pages.urls.admin);
    ctx.status = 303;
  });

  const extend = pages.loggedIn(async (ctx, login) => {
    const { user, serverName } = await findTarget(ctx, login, 'users:activity');
    const form = await pages.readForm(ctx);
    const to = returnTo(form) ?? pages.urls.home;
    try {
      await servers.extend(user.name, serverName);
    } catch (error) {
      if (!(error instanceof HubError) || error.code !== 'conflict') throw error;
      pages.redirectWithNotice(ctx, to, { kind: 'bad', text: withHint(error) });
      return;
    }
    pages.redirectWithNotice(ctx, to, { kind: 'good', text: text`The server keeps running.` });
  });

  for (const path of ['', '/:user', '/:user/:server']) {
    router.post(`/extend${path}`, extend);
    router.get(`/spawn${path}`, show);
    router.post(`/spawn${path}`, start);
    router.get(`/spawn-pending${path}`, showPending);
    router.post(`/stop${path}`, stop);
  }

  router.post(
    '/create-server',
    pages.loggedIn(async (ctx, login) => {
      const form = await pages.readForm(ctx);
      const serverName = form.get('name') ?? '';
      ctx['params']['user'] = form.get('user') ?? login.user.name;
      ctx['params']['server'] = serverName;
      const { user } = await findTarget(ctx, login, 'start:servers');
      try {
        await servers.create({ user, serverName });
      } catch (error) {
        const isMistake =
          error instanceof HubError && (error.code === 'bad_request' || error.code === 'conflict');
        if (!isMistake || user.id !== login.user.id) throw error;
        await deps.showHome(ctx, login, {
          problem: translated(error.shown.message),
          typedName: serverName,
        });
        return;
      }
      ctx.redirect(pages.urls.spawn(user.name, serverName));
      ctx.status = 303;
    }),
  );

  router.get(
    '/delete-server/:user/:server',
    pages.loggedIn(async (ctx, login) => {
      const { user, serverName } = await findTarget(ctx, login, 'delete:servers');
      pages.send(
        ctx,
        confirmPage({
          layout: await pages.formLayoutFor(ctx),
          title: text`Delete the server ${serverName}?`,
          consequences: [
            text`It is stopped, and its settings are forgotten. Files in its folder stay.`,
          ],
          label: text`Delete server`,
          action: pages.urls.deleteServer(user.name, serverName),
          cancelUrl: pages.urls.server(user.name, serverName),
        }),
      );
    }),
  );

  router.post(
    '/delete-server/:user/:server',
    pages.loggedIn(async (ctx, login) => {
      const { user, serverName } = await findTarget(ctx, login, 'delete:servers');
      await pages.readForm(ctx);
      await servers.remove(user.name, serverName, { kind: 'user', name: login.user.name });
      const back = login.user.id === user.id ? pages.urls.home : pages.urls.adminUser(user.name);
      tell(ctx, back, text`The server ${serverName} is deleted.`);
    }),
  );
}

/** Shows where a server stands: starting, stopping, not running; a ready one is opened. */
export async function showServerState(
  ctx: Context,
  deps: SpawnRouteDeps,
  { user, serverName }: Target,
  options: {
    readonly next: string | undefined;
    readonly mayStart: boolean;
    /** Whether the visitor may see what the server writes. */
    readonly mayReadOutput: boolean;
    readonly stoppedStatus?: number;
    readonly startSeconds?: number;
  },
): Promise<void> {
  const { pages, store, servers, lifecycle } = deps;
  const server = await store.find(user.name, serverName);
  const summary = { userName: user.name, name: serverName, displayName: server?.displayName };
  const layout = await pages.formLayoutFor(ctx);
  const prefix = servers.prefixOf({ userName: user.name, name: serverName });
  const readyUrl = pages.urlOf(options.next ?? prefix);
  const unreachable = server && unreachableSince(server);
  if (unreachable !== undefined) {
    const view = { layout, server: summary, since: unreachable, mayForget: options.mayStart };
    pages.send(ctx, unreachablePage(view), options.stoppedStatus === undefined ? 200 : 503);
    return;
  }
  switch (server?.state) {
    case 'running':
      // Its route is not there, so that leading to it would lead back to here.
      if (!(await lifecycle.reaches(server))) {
        throw new HubError('unavailable', text`The hub does not reach this server at the moment.`, {
          hint: text`Try again in a moment.`,
          retryAfterSeconds: 5,
        });
      }
      return leadOn(ctx, pages, readyUrl);
    case 'starting': {
      const path = serverName === '' ? 'server' : `servers/${encodeURIComponent(serverName)}`;
      const api = `${deps.apiPath}users/${encodeURIComponent(user.name)}/${path}`;
      const log = lifecycle.unitOf(server.id)?.progress;
      const recent = log?.events ?? (await deps.progressElsewhere.soFar(server));
      pages.send(
        ctx,
        spawnPendingPage({
          layout,
          server: summary,
          progress: recent.at(-1)?.progress ?? 0,
          steps: recent,
          since: server.startingAt,
          usualMs: await deps.startTimes.usualMs(profileOf(server)),
          eventsUrl: `${api}/progress`,
          ...(options.mayReadOutput && {
            output: { url: `${api}/output`, lines: await linesOf(server, deps) },
          }),
          readyUrl,
        }),
        options.stoppedStatus === undefined ? 200 : 503,
      );
      return;
    }
    case 'stopping':
      pages.send(
        ctx,
        stopPendingPage({ layout, server: summary }),
        options.stoppedStatus === undefined ? 200 : 503,
      );
      return;
    case 'stopped':
    case undefined:
      pages.send(
        ctx,
        notRunningPage({
          layout,
          server: summary,
          failure: failureOf(server),
          stoppedBy: server && stoppedByOf(server),
          mayStart: options.mayStart,
          hasSpawnOptions: hasChoices(await servers.choicesFor(summary.userName)),
          next: options.next,
          startSeconds: options.startSeconds,
        }),
        options.stoppedStatus ?? 200,
      );
  }
}

/** The last lines of a start; none where its instance does not answer. */
async function linesOf(
  { id }: Server,
  { serverOutput }: Pick<SpawnRouteDeps, 'serverOutput'>,
): Promise<readonly string[]> {
  try {
    return (await serverOutput.of(id).read(undefined, startLines)).lines;
  } catch (error) {
    if (error instanceof HubError) return [];
    throw error;
  }
}

function profileOf({ userOptions: { profile } }: Server): string | undefined {
  return typeof profile === 'string' ? profile : undefined;
}

function failureOf(
  server: Server | undefined,
): { message: string; at: Date; output: readonly string[] } | undefined {
  return server?.failure;
}

function pendingUrl(
  pages: PageContext,
  { user, serverName }: Target,
  next: string | undefined,
): string {
  const url = pages.urls.spawnPending(user.name, serverName);
  return next === undefined ? url : `${url}?next=${encodeURIComponent(next)}`;
}

function toTexts(options: Readonly<Record<string, unknown>>): Record<string, string> {
  const simple = Object.entries(options).filter(([, value]) => typeof value !== 'object');
  return Object.fromEntries(simple.map(([name, value]) => [name, String(value)]));
}
