import { z } from 'zod';
import type { UserStore } from '../identity/users/user-store.ts';
import type { StartAtLogin, StartChoice } from '../workloads/servers/start-at-login.ts';
import { operation } from './operation.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'getByName'>;
  readonly startAtLogin: Pick<StartAtLogin, 'of' | 'choose'>;
}

const shared = { path: '/users/{name}/start-at-login', tag: 'servers', target: 'server' } as const;

const choice = z
  .object({
    enabled: z.boolean(),
    may_choose: z.boolean().describe('Whether `Spawner.start_at_login` leaves it to users.'),
  })
  .meta({ id: 'StartAtLogin' });

const presented = ({ isOn, mayChoose }: StartChoice) => ({
  status: 200 as const,
  body: { enabled: isOn, may_choose: mayChoose },
});

/** Whether a login starts the server of its user. */
export const startAtLoginOperations = [
  operation({
    ...shared,
    id: 'getStartAtLogin',
    method: 'GET',
    summary: "Read whether a login starts a user's default server",
    scopes: ['read:servers'],
    answers: { 200: { description: 'Whether it does.', schema: choice } },
  }).handle(async ({ params }, { users, startAtLogin }: Deps) =>
    presented(await startAtLogin.of(await users.getByName(params.name))),
  ),
  operation({
    ...shared,
    id: 'chooseStartAtLogin',
    method: 'PUT',
    audit: ['server.start_at_login'],
    summary: "Choose whether a login starts a user's default server",
    description: 'Answers 409 where `Spawner.start_at_login` is not `choice`.',
    scopes: ['start:servers'],
    actsOnUser: true,
    body: z.strictObject({ enabled: z.boolean() }),
    answers: { 200: { description: 'Whether it does from now on.', schema: choice } },
  }).handle(async ({ params, body }, { users, startAtLogin }: Deps) => {
    const user = await users.getByName(params.name);
    await startAtLogin.choose(user, body.enabled);
    return presented(await startAtLogin.of(user));
  }),
];
