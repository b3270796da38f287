import { hash } from 'node:crypto';

/** A value that is written as JSON already. */
export class JsonText<Value> {
  readonly bytes: Buffer;
  #version: string | undefined;

  constructor(value: Value) {
    this.bytes = Buffer.from(JSON.stringify(value));
  }

  /** Another one for other content. */
  get version(): string {
    this.#version ??= hash('sha256', this.bytes, 'base64url').slice(0, 22);
    return this.#version;
  }
}
