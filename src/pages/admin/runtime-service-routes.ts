import type { Context } from 'koa';
import { HubError } from '../../errors.ts';
import type { Caller } from '../../rbac/caller.ts';
import {
  type RuntimeService,
  serviceDefinition,
  versionOfService,
} from '../../services/runtime-service.ts';
import type { ServiceAdministration } from '../../services/service-administration.ts';
import { fieldProblem } from '../../texts/field-problem.ts';
import { text } from '../../texts/text.ts';
import type { ChangedMeanwhile } from '../elements/changed-meanwhile.ts';
import { problemOf } from '../problem-of.ts';
import {
  type Admin,
  type AdminContext,
  isOfFormerVersion,
  parameter,
  versionIn,
} from './admin-context.ts';
import { addDeletion } from './deletion-routes.ts';
import {
  type AdminServiceFormView,
  adminServiceFormPage,
  type LaunchForm,
  newServicePage,
  type ServiceForm,
  serviceFacts,
} from './service-form-page.ts';

/** `/hub/admin/new-service` and `/hub/admin/services/<name>/…`: services that are added at run time. */
export function adminRuntimeServiceRoutes(
  admin: AdminContext,
  {
    administration,
    allowsManaged,
  }: {
    readonly administration: ServiceAdministration;
    /** `Hub.allow_managed_services_at_runtime`. */
    readonly allowsManaged: boolean;
  },
): void {
  const { pages } = admin;
  const { urls } = pages;

  async function serviceFor(ctx: Context, who: Admin): Promise<RuntimeService> {
    const name = parameter(ctx, 'service');
    who.require('admin:services', { kind: 'service', name });
    const service = await administration.find(name);
    if (service !== undefined) return service;
    throw new HubError('not_found', text`No such service was added at run time.`);
  }

  function requireEditable({ definition }: RuntimeService): void {
    if (definition.command === undefined || allowsManaged) return;
    throw new HubError('forbidden', text`Commands cannot be changed while the hub runs.`, {
      hint: text`Hub.allow_managed_services_at_runtime allows them.`,
    });
  }

  async function showForm(
    ctx: Context,
    form: ServiceForm,
    more: Pick<AdminServiceFormView, 'version' | 'problem' | 'changed'> = {},
  ): Promise<void> {
    const page = adminServiceFormPage({ layout: await pages.formLayoutFor(ctx), form, ...more });
    const isAnswer = more.problem !== undefined || more.changed !== undefined;
    pages.send(ctx, page, isAnswer ? 400 : 200);
  }

  admin.get('/admin/new-service', async (ctx, who) => {
    who.require('admin:services');
    const launch = allowsManaged ? emptyLaunch : undefined;
    const form = { name: '', title: '', url: '', access: 'gateway', isDisplayed: true, launch };
    await showForm(ctx, form);
  });

  admin.post('/admin/new-service', async (ctx, who, form) => {
    who.require('admin:services');
    const typed = readForm(form, (form.get('name') ?? '').trim(), allowsManaged);
    let token: string | undefined;
    try {
      ({ token } = await add(who.caller, typed));
    } catch (error) {
      return showForm(ctx, typed, { problem: problemOf(error) });
    }
    if (token === undefined) {
      const done = text`${typed.name} is added, and starting.`;
      pages.redirectWithNotice(ctx, urls.adminService(typed.name), { kind: 'good', text: done });
      return;
    }
    const layout = await pages.formLayoutFor(ctx);
    pages.send(ctx, newServicePage({ layout, name: typed.name, token }));
  });

  async function add(caller: Caller, typed: ServiceForm) {
    const definition = parseDefinition(membersOf(typed));
    return administration.create(caller, typed.name, { definition, apiToken: undefined });
  }

  admin.get('/admin/services/:service/edit', async (ctx, who) => {
    const service = await serviceFor(ctx, who);
    requireEditable(service);
    await showForm(ctx, formOf(service), { version: versionOfService(service) });
  });

  admin.post('/admin/services/:service/edit', async (ctx, who, form) => {
    const service = await serviceFor(ctx, who);
    requireEditable(service);
    const { name, command: formerCommand } = service.definition;
    const typed = readForm(form, name, formerCommand !== undefined);
    const version = versionOfService(service);
    try {
      await administration.change(
        who.caller,
        name,
        ({ name: _name, info, url: _url, ...definition }) => {
          if (typed.launch?.command === '') {
            throw new HubError('bad_request', text`command: a managed service needs one.`);
          }
          const kept =
            typed.launch === undefined ? definition : withoutLaunch(definition, typed.launch);
          return {
            definition: parseDefinition({ ...kept, ...membersOf(typed, info) }),
            apiToken: undefined,
          };
        },
        versionIn(form),
      );
    } catch (error) {
      if (isOfFormerVersion(error)) {
        return showForm(ctx, typed, { version, changed: await changeOf(who, service) });
      }
      return showForm(ctx, typed, { version, problem: problemOf(error) });
    }
    const done = text`${name} is changed.`;
    pages.redirectWithNotice(ctx, urls.adminService(name), { kind: 'good', text: done });
  });

  async function changeOf(who: Admin, service: RuntimeService): Promise<ChangedMeanwhile> {
    const { name } = service.definition;
    const by = await admin.lastActor(who, ['service.create', 'service.change'], name);
    return { by, now: serviceFacts(formOf(service)) };
  }

  addDeletion(admin, '/admin/services/:service/delete', {
    find: serviceFor,
    versionOf: versionOfService,
    question: ({ definition: { name } }) => ({
      title: text`Delete the service ${name}?`,
      consequences: [
        text`Its token, its roles and what users allowed it end at once, and its pages are gone.`,
      ],
      label: text`Delete service`,
      action: urls.adminService(name, 'delete'),
      cancelUrl: urls.adminService(name),
    }),
    changeOf,
    delete: (who, { definition: { name } }, requireVersion) =>
      administration.delete(who.caller, name, requireVersion),
    done: ({ definition: { name } }) => ({
      url: urls.adminServices,
      text: text`${name} is deleted.`,
    }),
  });
}

const emptyLaunch: LaunchForm = {
  command: '',
  environment: '',
  isEnvironmentCleared: false,
  cwd: '',
  user: '',
};

function formOf({ definition }: RuntimeService): ServiceForm {
  const { name, info, url = '', access, display, command, cwd = '', user = '' } = definition;
  const title = info['title'];
  return {
    name,
    title: typeof title === 'string' ? title : '',
    url,
    access,
    isDisplayed: display,
    launch: command && { ...emptyLaunch, command: command.map(quoteWord).join(' '), cwd, user },
  };
}

/** A word of a command line as `toArguments` reads it: parts in different quotes are one word. */
function quoteWord(word: string): string {
  if (word !== '' && !/[\s"']/.test(word)) return word;
  const parts = word.split('"').map((part) => `"${part}"`);
  return parts.join(`'"'`);
}

function readForm(form: URLSearchParams, name: string, hasLaunch: boolean): ServiceForm {
  const typed = (field: string) => (form.get(field) ?? '').trim();
  return {
    name,
    title: typed('title'),
    url: typed('url'),
    access: typed('access'),
    isDisplayed: form.has('display'),
    launch: hasLaunch
      ? {
          command: typed('command'),
          environment: form.get('environment') ?? '',
          isEnvironmentCleared: form.has('clear_environment'),
          cwd: typed('cwd'),
          user: typed('user'),
        }
      : undefined,
  };
}

/** What of a managed service its form replaces, and what it keeps. */
function withoutLaunch(definition: object, { isEnvironmentCleared }: LaunchForm): object {
  const kept: Record<string, unknown> = { ...definition };
  for (const member of ['command', 'cwd', 'user']) delete kept[member];
  if (isEnvironmentCleared) delete kept['environment'];
  return kept;
}

function membersOf(
  { title, url, access, isDisplayed, launch }: ServiceForm,
  info: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  const { title: former, ...further } = info;
  // One in languages is changed over the API; the form has a field for one text.
  const kept = typeof former === 'object' && former !== null ? { title: former } : {};
  return {
    ...(url !== '' && { url }),
    // Without an address there are no visitors, whatever is chosen for them.
    access: url === '' ? 'service' : access,
    display: isDisplayed,
    info: { ...further, ...kept, ...(title !== '' && { title }) },
    ...(launch !== undefined && launchMembersOf(launch)),
  };
}

function launchMembersOf({ command, environment, cwd, user }: LaunchForm): Record<string, unknown> {
  const variables = readVariables(environment);
  return {
    ...(command !== '' && { command }),
    ...(variables.length > 0 && { environment: Object.fromEntries(variables) }),
    ...(cwd !== '' && { cwd }),
    ...(user !== '' && { user }),
  };
}

/** Throws `bad_request` for a line that is no variable; it may hold a secret and is not repeated. */
function readVariables(lines: string): [string, string][] {
  return lines.split(/\r?\n/).flatMap((line, index): [string, string][] => {
    if (line.trim() === '') return [];
    const [, name, value] = /^\s*([^=\s]+)=(.*)$/.exec(line) ?? [];
    if (name !== undefined && value !== undefined) return [[name, value]];
    throw new HubError('bad_request', text`environment: line ${index + 1} is not NAME=value.`);
  });
}

function parseDefinition(members: Record<string, unknown>) {
  const parsed = serviceDefinition.safeParse(members);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new HubError('bad_request', fieldProblem(issue?.path.join('.') ?? '', issue?.message));
}
