const scales: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 1024,
  Mi: 1024 ** 2,
  Gi: 1024 ** 3,
  Ti: 1024 ** 4,
  Pi: 1024 ** 5,
  Ei: 1024 ** 6,
};

/** Reads a quantity of Kubernetes (`200Mi`, `1.5G`, `250m`, `1e3`) as a number; undefined when it is none. */
export function parseQuantity(text: string): number | undefined {
  const [, number, suffix = ''] =
    /^([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)([numkMGTPE]|[KMGTPE]i)?$/.exec(text) ?? [];
  const scale = scales[suffix];
  return number === undefined || scale === undefined ? undefined : Number(number) * scale;
}
