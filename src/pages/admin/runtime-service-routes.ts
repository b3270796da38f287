import type { Context } from 'koa';
import { HubError } from '../../errors.ts';
import type { Caller } from '../../rbac/caller.ts';
import {
  type RuntimeService,
  serviceDefinition,
  versionOf,
} from '../../services/runtime-service.ts';
import type { ServiceAdministration } from '../../services/service-administration.ts';
import { confirmPage } from '../errors/confirm-page.ts';
import { type Admin, type AdminContext, parameter } from './admin-context.ts';
import { problemOf } from './problem-of.ts';
import { adminServiceFormPage, newServicePage, type ServiceForm } from './service-form-page.ts';

/** `/hub/admin/new-service` and `/hub/admin/services/<name>/…`: external services that are added at run time. */
export function adminRuntimeServiceRoutes(
  admin: AdminContext,
  { administration }: { readonly administration: ServiceAdministration },
): void {
  const { pages } = admin;
  const { urls } = pages;

  async function serviceFor(ctx: Context, who: Admin): Promise<RuntimeService> {
    const name = parameter(ctx, 'service');
    who.require('admin:services', { kind: 'service', name });
    const service = await administration.find(name);
    if (service !== undefined) return service;
    throw new HubError('not_found', 'No such service was added at run time.');
  }

  async function showForm(
    ctx: Context,
    form: ServiceForm,
    more: { readonly version?: string; readonly problem?: string } = {},
  ): Promise<void> {
    const page = adminServiceFormPage({ layout: await pages.formLayoutFor(ctx), form, ...more });
    pages.send(ctx, page, more.problem === undefined ? 200 : 400);
  }

  admin.get('/admin/new-service', async (ctx, who) => {
    who.require('admin:services');
    await showForm(ctx, { name: '', title: '', url: '', access: 'gateway', isDisplayed: true });
  });

  admin.post('/admin/new-service', async (ctx, who, form) => {
    who.require('admin:services');
    const typed = readForm(form, (form.get('name') ?? '').trim());
    let token: string | undefined;
    try {
      ({ token } = await add(who.caller, typed));
    } catch (error) {
      return showForm(ctx, typed, { problem: problemOf(error) });
    }
    const layout = await pages.formLayoutFor(ctx);
    pages.send(ctx, newServicePage({ layout, name: typed.name, token: token ?? '' }));
  });

  async function add(caller: Caller, typed: ServiceForm) {
    const definition = parseDefinition(membersOf(typed));
    return administration.create(caller, typed.name, { definition, apiToken: undefined });
  }

  admin.get('/admin/services/:service/edit', async (ctx, who) => {
    const service = await serviceFor(ctx, who);
    await showForm(ctx, formOf(service), { version: versionOf(service) });
  });

  admin.post('/admin/services/:service/edit', async (ctx, who, form) => {
    const service = await serviceFor(ctx, who);
    const { name } = service.definition;
    const typed = readForm(form, name);
    const version = versionOf(service);
    try {
      await administration.change(
        who.caller,
        name,
        ({ name: _name, info, url: _url, ...definition }) => ({
          definition: parseDefinition({ ...definition, ...membersOf(typed, info) }),
          apiToken: undefined,
        }),
        (current) => {
          if (form.get('version') === current) return;
          const message = 'This service has been changed since you opened it.';
          throw new HubError('conflict', message, {
            hint: 'Save again to replace that with what stands here.',
          });
        },
      );
    } catch (error) {
      return showForm(ctx, typed, { version, problem: problemOf(error) });
    }
    const text = `${name} is changed.`;
    pages.redirectWithNotice(ctx, urls.adminServices, { kind: 'good', text });
  });

  admin.get('/admin/services/:service/delete', async (ctx, who) => {
    const { name } = (await serviceFor(ctx, who)).definition;
    const page = confirmPage({
      layout: await pages.formLayoutFor(ctx),
      title: `Delete the service ${name}?`,
      consequences: [
        'Its token, its roles and what users allowed it end at once, and its pages are gone.',
      ],
      label: 'Delete service',
      action: urls.adminService(name, 'delete'),
      cancelUrl: urls.adminServices,
    });
    pages.send(ctx, page);
  });

  admin.post('/admin/services/:service/delete', async (ctx, who) => {
    const { name } = (await serviceFor(ctx, who)).definition;
    await administration.delete(who.caller, name, () => {});
    const text = `${name} is deleted.`;
    pages.redirectWithNotice(ctx, urls.adminServices, { kind: 'good', text });
  });
}

function formOf({ definition }: RuntimeService): ServiceForm {
  const { name, info, url = '', access, display } = definition;
  const title = info['title'];
  return {
    name,
    title: typeof title === 'string' ? title : '',
    url,
    access,
    isDisplayed: display,
  };
}

function readForm(form: URLSearchParams, name: string): ServiceForm {
  const text = (field: string) => (form.get(field) ?? '').trim();
  return {
    name,
    title: text('title'),
    url: text('url'),
    access: text('access'),
    isDisplayed: form.has('display'),
  };
}

function membersOf(
  { title, url, access, isDisplayed }: ServiceForm,
  info: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  const { title: _former, ...further } = info;
  return {
    ...(url !== '' && { url }),
    access,
    display: isDisplayed,
    info: { ...further, ...(title !== '' && { title }) },
  };
}

function parseDefinition(members: Record<string, unknown>) {
  const parsed = serviceDefinition.safeParse(members);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new HubError('bad_request', `${issue?.path.join('.')}: ${issue?.message}.`);
}
