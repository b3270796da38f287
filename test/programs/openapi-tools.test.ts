import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createOpenApiDocument } from '../../src/entrances/api/openapi.ts';
import { pathOf, requires } from '../support/requires.ts';
import { projectDirectory } from '../support/services.ts';

const programs = join(projectDirectory, 'node_modules', '.bin');

describe.skipIf(!requires('openapi-tools'))('the OpenAPI description', () => {
  let folder: string;
  beforeAll(() => {
    const cache = join(projectDirectory, 'node_modules', '.cache');
    mkdirSync(cache, { recursive: true });
    // Within the project: what is generated there finds zod.
    folder = mkdtempSync(join(cache, 'openapi-'));
    const document = createOpenApiDocument({
      version: '0.1.0',
      publicUrl: new URL('https://hub.example.org/'),
      loginCookie: 'hub-login',
    });
    writeFileSync(join(folder, 'openapi.json'), JSON.stringify(document));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  async function run(program: string, ...args: readonly string[]): Promise<string> {
    const { PATH = '' } = process.env;
    const { stdout } = await promisify(execFile)(program, args, {
      cwd: folder,
      env: {
        PATH: `${programs}:${PATH}`,
        HOME: folder,
        CI: 'true',
        REDOCLY_TELEMETRY: 'off',
        REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true',
        SCARF_ANALYTICS: 'false',
      },
    });
    return stdout;
  }
  const tool = (name: string) => resolve(dirname(pathOf('openapi-tools')), name);

  test('has nothing that Spectral complains of', async () => {
    writeFileSync(join(folder, '.spectral.yaml'), 'extends: ["spectral:oas"]\n');
    const args = ['lint', 'openapi.json', '--format=json', '--quiet', '--fail-severity=hint'];
    expect(JSON.parse(await run(tool('spectral'), ...args))).toEqual([]);
  });

  test('has nothing that Redocly complains of', async () => {
    const found = await run(tool('redocly'), 'lint', 'openapi.json', '--format=json');
    expect(JSON.parse(found)).toMatchObject({ totals: { errors: 0, warnings: 0 } });
  });

  test.each([
    ['openapi-typescript', ['openapi.json', '--output=made.ts'], 'made.ts'],
    ['openapi-ts', ['--input=openapi.json', '--output=hey-api'], 'hey-api'],
    ['orval', ['--input=openapi.json', '--output=orval/fetch.ts', '--client=fetch'], 'orval'],
    ['orval', ['--input=openapi.json', '--output=orval-zod/zod.ts', '--client=zod'], 'orval-zod'],
  ])('%s makes of it what compiles under strict (%j)', async (program, args, made) => {
    await run(tool(program), ...args);
    const config = `tsconfig-${made.replaceAll(/\W/g, '-')}.json`;
    writeFileSync(
      join(folder, config),
      JSON.stringify({
        compilerOptions: {
          strict: true,
          noEmit: true,
          target: 'es2022',
          module: 'esnext',
          moduleResolution: 'bundler',
          lib: ['es2023', 'dom', 'dom.iterable'],
          types: [],
        },
        include: [made],
      }),
    );
    expect(await run(join(programs, 'tsc'), '--project', config)).toBe('');
  });
});
