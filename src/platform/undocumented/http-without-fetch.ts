import process from 'node:process';

/** What `node:http` has from the package behind `fetch`, behind getters. */
const names = ['WebSocket', 'CloseEvent', 'MessageEvent'] as const;

/**
 * Imports `node:http` without loading `fetch`. For the first import of it Node.js reads every property, those too whose
 * getters load undici and compile its WebAssembly: 13 MiB for as long as the program runs. To be called before anything
 * else imports it. Afterwards `fetch` and the properties are there as ever, and are loaded when they are used; only
 * `import { WebSocket } from 'node:http'` is undefined, which is a global as well.
 */
export async function importHttpWithoutFetch(): Promise<void> {
  // Typed as an object whose properties are all there; this is about how they are.
  const http: object = process.getBuiltinModule('node:http');
  const descriptors = names.map(
    (name) => [name, Object.getOwnPropertyDescriptor(http, name)] as const,
  );
  for (const [name, descriptor] of descriptors) {
    if (descriptor?.configurable === true) {
      Object.defineProperty(http, name, { ...shape, value: undefined });
    }
  }
  await import('node:http');
  for (const [name, descriptor] of descriptors) {
    if (descriptor?.configurable === true) Object.defineProperty(http, name, descriptor);
  }
}

const shape = { configurable: true, enumerable: true, writable: true };
