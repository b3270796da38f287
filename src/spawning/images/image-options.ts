import { z } from 'zod';

/** A reference such as `python:3.13`, `registry.example.org:5000/team/lab@sha256:…`. */
export const imageReference = z
  .string()
  .regex(/^[a-z0-9][\w.:/@-]{0,254}$/i, 'is not a reference of an image such as python:3.13-slim');

/** A list of images, or labels on the page to images. */
export const imageChoices = z.union([
  z.array(imageReference).transform((list) => Object.fromEntries(list.map((each) => [each, each]))),
  z.record(z.string().min(1), imageReference),
]);
