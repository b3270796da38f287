import { flag, type OperationFacts, type Operations, object, ref } from './openapi-operation.ts';

/** The operations of the default server and of a named one differ only in their paths. */
function startedByPath(path: `/${string}`, suffix: string, which: string): Operations {
  const shared = { tag: 'servers' };
  const start: OperationFacts = {
    ...shared,
    id: `start${suffix}`,
    summary: `Start ${which}`,
    description:
      'Options stand in `user_options`, or are the whole body. Answers when the server is ready, or after ten seconds.',
    scopes: ['start:servers'],
    body: { schema: ref('ServerOptions'), required: false },
    responses: {
      201: { description: 'It is ready.', schema: ref('Server') },
      202: { description: 'It is starting; follow its progress.', schema: ref('Server') },
    },
  };
  return {
    [`GET ${path}` as const]: {
      ...shared,
      id: `get${suffix}`,
      summary: `Read ${which}`,
      scopes: ['read:servers'],
      responses: { 200: { description: 'The server.', schema: ref('Server') } },
    },
    [`POST ${path}` as const]: start,
    [`DELETE ${path}` as const]: {
      ...shared,
      id: `stop${suffix}`,
      summary: `Stop ${which}`,
      description: 'With `remove`, a named server is deleted as well.',
      scopes: ['delete:servers'],
      body: { schema: object({ 'remove?': flag() }), required: false },
      responses: {
        202: { description: 'It is stopping.' },
        204: { description: 'It has stopped.' },
      },
    },
    [`GET ${path}/progress` as const]: {
      ...shared,
      id: `follow${suffix}`,
      summary: `Follow the start of ${which}`,
      description: 'Server-sent events until the server is ready or has failed.',
      scopes: ['read:servers'],
      responses: {
        200: {
          description: 'One `data:` line of JSON an event.',
          schema: ref('Progress'),
          mediaType: 'text/event-stream',
        },
      },
    },
  };
}

const named = '/hub/api/users/{name}/servers/{server}';

/** Users' servers. */
export const serverOperations: Operations = {
  ...startedByPath('/hub/api/users/{name}/server', 'DefaultServer', "a user's default server"),
  ...startedByPath(named, 'NamedServer', 'a named server'),
  [`PUT ${named}` as const]: {
    id: 'createNamedServer',
    tag: 'servers',
    summary: 'Create a named server without starting it',
    scopes: ['start:servers'],
    body: { schema: ref('ServerOptions'), required: false },
    responses: { 201: { description: 'The new server.', schema: ref('Server') } },
  },
  [`PATCH ${named}` as const]: {
    id: 'changeNamedServer',
    tag: 'servers',
    summary: 'Change the name shown, or the options of the next start',
    scopes: ['start:servers'],
    body: { schema: ref('ServerOptions') },
    responses: { 200: { description: 'The changed server.', schema: ref('Server') } },
  },
};
