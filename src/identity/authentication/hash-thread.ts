/**
 * A thread that works out password hashes, one message after the other. Started by `hash-threads.ts`,
 * never imported for its effect.
 */
import { type Argon2Algorithm, argon2Sync, scryptSync } from 'node:crypto';
import { getPriority, platform, setPriority } from 'node:os';
import { type MessagePort, parentPort } from 'node:worker_threads';
import { hashSync } from 'bcryptjs';

/** What a hash is made of, and by which algorithm. */
export type HashJob =
  | {
      readonly algorithm: Extract<Argon2Algorithm, 'argon2id'>;
      readonly password: string;
      readonly salt: Uint8Array;
      readonly tagBytes: number;
      readonly memoryKib: number;
      readonly passes: number;
      readonly parallelism: number;
    }
  | {
      readonly algorithm: 'scrypt';
      readonly password: string;
      readonly salt: Uint8Array;
      readonly tagBytes: number;
      /** Cost, block size and parallelization of RFC 7914 §2. */
      readonly N: number;
      readonly r: number;
      readonly p: number;
    }
  | {
      readonly algorithm: 'bcrypt';
      readonly password: string;
      /** With version and cost: `$2b$12$` and 22 characters. */
      readonly salt: string;
    };

/** The answer to one job. */
export type HashAnswer = { readonly tag: Uint8Array } | { readonly error: string };

/** Requests come before hashes where both want a core, and users' servers do not starve the logins. */
const niceness = 5;

if (parentPort !== null) serve(parentPort);

function serve(port: MessagePort): void {
  // Of Linux alone it is the thread's own: elsewhere it would be that of the whole process. Where that is
  // nicer already, such as in a unit with Nice=10, the system would refuse it.
  if (platform() === 'linux' && getPriority() < niceness) setPriority(niceness);
  port.on('message', (job: HashJob) => port.postMessage(answerTo(job)));
}

function answerTo(job: HashJob): HashAnswer {
  try {
    return { tag: tagOf(job) };
  } catch (error) {
    return { error: String(error) };
  }
}

function tagOf(job: HashJob): Buffer {
  if (job.algorithm === 'bcrypt')
    return Buffer.from(hashSync(job.password, job.salt).slice(job.salt.length));
  const { password, salt, tagBytes } = job;
  if (job.algorithm === 'scrypt') {
    const { N, r, p } = job;
    return scryptSync(password, salt, tagBytes, { N, r, p, maxmem: 128 * r * (N + p + 2) });
  }
  return argon2Sync('argon2id', {
    message: password,
    nonce: salt,
    parallelism: job.parallelism,
    tagLength: tagBytes,
    memory: job.memoryKib,
    passes: job.passes,
  });
}
