import { HubError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import type { SpawnRequest } from '../../plugin/host/spawn-request.ts';
import type { OptionsForm } from '../../plugin/host/spawner.ts';

/** Options that say which images there are; the same for every engine that has images. */
interface ImageOptions {
  readonly image?: string | undefined;
  readonly allowed_images: Readonly<Record<string, string>>;
}

interface ProfileImageOptions {
  readonly image?: string | undefined;
  readonly allowed_images?: Readonly<Record<string, string>> | undefined;
}

/** The field with which users choose among the allowed images; undefined without a choice. */
export function imageForm({ allowed_images, image }: ImageOptions): OptionsForm | undefined {
  const choices = Object.entries(allowed_images).map(([label, value]) => ({ label, value }));
  if (choices.length === 0) return undefined;
  const own = choices.find(({ value }) => value === image) ?? choices[0];
  return {
    fields: [
      {
        name: 'image',
        label: 'Image',
        type: 'select',
        choices,
        ...(own === undefined ? {} : { default: own.value }),
      },
    ],
  };
}

/**
 * The image of a server: what its user chose, of those that are allowed; else that of the profile, else that
 * of the configuration. Throws `bad_request` for any other choice.
 */
export function chooseImage(
  {
    userOptions,
    profileOptions,
  }: Pick<SpawnRequest<ProfileImageOptions>, 'userOptions' | 'profileOptions'>,
  options: ImageOptions,
  /** Name of the section with the options, for the administrator. */
  section: string,
): string {
  const allowed = profileOptions.allowed_images ?? options.allowed_images;
  const wanted = userOptions['image'];
  const own = profileOptions.image ?? options.image ?? Object.values(allowed)[0];
  if (wanted !== undefined && wanted !== '' && wanted !== own) {
    // A profile with an image of its own has decided; the form of all profiles has a value all the same.
    if (profileOptions.image !== undefined && profileOptions.allowed_images === undefined) {
      return profileOptions.image;
    }
    const image = typeof wanted === 'string' && (allowed[wanted] ?? wanted);
    if (typeof image === 'string' && Object.values(allowed).includes(image)) return image;
    throw new HubError('bad_request', text`This image is not one of those that may be chosen.`, {
      hint: text`These may be: ${Object.values(allowed).join(', ') || 'none'}.`,
    });
  }
  if (own !== undefined) return own;
  throw new HubError('internal', text`No image is configured for servers.`, {
    hint: text`The administrator must set ${section}.image, or an image in each profile.`,
  });
}
