/** What the processes of a batch script have used, as `sstat` tells it. */
export interface JobFigures {
  readonly jobId: string;
  readonly cpuSeconds: number;
  readonly memoryBytes: number;
}

/**
 * Reads the fields JobID, AveCPU and AveRSS of sstat(1), one line for each batch step, with `|` between them.
 * Lines of other steps and without figures are left out.
 */
export function readFigures(output: string): JobFigures[] {
  return output.split('\n').flatMap((line) => {
    const [step = '', time = '', memory = ''] = line.trim().split('|');
    const jobId = /^(\d+)\.batch$/.exec(step)?.[1];
    const cpuSeconds = parseCpuTime(time);
    const memoryBytes = parseSize(memory);
    return jobId === undefined || cpuSeconds === undefined || memoryBytes === undefined
      ? []
      : [{ jobId, cpuSeconds, memoryBytes }];
  });
}

/** `[[days-]hours:]minutes:seconds[.fraction]` in seconds. */
function parseCpuTime(text: string): number | undefined {
  const parts = /^(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+(?:\.\d+)?)$/.exec(text);
  if (parts === null) return undefined;
  const [days = 0, hours = 0, minutes = 0, seconds = 0] = parts
    .slice(1)
    .map((part) => Number(part ?? 0));
  return ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
}

const units = ['', 'K', 'M', 'G', 'T', 'P'];

/** Bytes, or with a unit of 1024. */
function parseSize(text: string): number | undefined {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?)([KMGTP])?$/.exec(text) ?? [];
  return number === undefined
    ? undefined
    : Math.round(Number(number) * 1024 ** units.indexOf(unit));
}
