import { z } from 'zod';
import type { AuthenticatorPlugin, FormAuthenticator } from '../src/plugin/plugin.ts';
import { labelOption } from './external/label-option.ts';
import { nameAndPassword } from './external/name-and-password.ts';

/** No honest password is longer, and hashing more would be work for nothing. */
const maxPasswordBytes = 1024;

const optionsSchema = z.strictObject({
  min_length: z.int().min(8).max(128).default(12).describe('Minimum length of a new password.'),
  refuse_common: z.boolean().default(true).describe('Whether common passwords are refused.'),
  label: labelOption
    .default('Password')
    .describe('Name of this login method on the login page, or an object with one per language.'),
});

type Options = z.output<typeof optionsSchema>;

const plugin: AuthenticatorPlugin<Options, FormAuthenticator> = {
  kind: 'authenticator',
  name: 'password',
  section: 'PasswordAuthenticator',
  optionsSchema,

  create(options, { credentials, passwordHasher, hubTitle, name }) {
    return {
      ownsAccounts: true,
      minimumPasswordLength: options.min_length,
      login: {
        kind: 'form',
        label: options.label,
        fields: nameAndPassword,
      },

      async authenticate(form) {
        const userName = form.get('username') ?? '';
        const password = form.get('password') ?? '';
        if (userName === '' || password === '' || isTooLong(password)) {
          return { outcome: 'refused', reason: 'credentials' };
        }
        const credential = await credentials.findPasswordHash(userName);
        const { matches, needsRehash } = await passwordHasher.verify(
          password,
          credential?.passwordHash,
        );
        if (!matches || credential === undefined) {
          return { outcome: 'refused', reason: 'credentials' };
        }
        if (needsRehash) {
          const replacing = credential.passwordHash;
          const passwordHash = await passwordHasher.hash(password);
          await credentials.rehashPassword(userName, passwordHash, { replacing });
        }
        return {
          outcome: 'authenticated',
          user: { name: userName, issuer: name, mustChangePassword: credential.mustChange },
        };
      },

      passwordProblem(password, { userName }) {
        const words = [userName, hubTitle].map(plainForm);
        const plain = plainForm(password);
        if ([...password].length < options.min_length) {
          const min = options.min_length;
          return {
            en: `A password needs at least ${min} ${min === 1 ? 'character' : 'characters'}.`,
            de: `Ein Passwort braucht mindestens ${min} Zeichen.`,
          };
        }
        if (isTooLong(password)) return problems.tooLong;
        if (/^(.{1,4})\1+.{0,3}$/u.test(password)) return problems.repeats;
        if (words.some((word) => word.length >= 3 && isMostly(plain, word))) {
          return problems.personal;
        }
        return options.refuse_common && isCommon(plain) ? problems.common : undefined;
      },
    };
  },
};

export default plugin;

const problems = {
  tooLong: { en: 'This password is too long.', de: 'Dieses Passwort ist zu lang.' },
  repeats: {
    en: 'This password is too repetitive. Mix in other characters.',
    de: 'Dieses Passwort wiederholt sich zu sehr. Mischen Sie andere Zeichen darunter.',
  },
  personal: {
    en: 'This password is too similar to your username or to this site’s name.',
    de: 'Dieses Passwort ist Ihrem Benutzernamen oder dem Namen dieser Website zu ähnlich.',
  },
  common: {
    en: 'This password is too common. Choose one that’s harder to guess.',
    de: 'Dieses Passwort ist zu verbreitet. Wählen Sie eines, das schwerer zu erraten ist.',
  },
};

function isTooLong(password: string): boolean {
  return Buffer.byteLength(password) > maxPasswordBytes;
}

/** Undoes the usual disguises: capitals, separators, and digits that look like letters. */
function plainForm(text: string): string {
  const lookAlikes: Readonly<Record<string, string>> = {
    '0': 'o',
    '1': 'i',
    '3': 'e',
    '4': 'a',
    '5': 's',
    '7': 't',
    '@': 'a',
    $: 's',
  };
  return text
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[\s._-]/g, '')
    .replaceAll(/[0134577@$]/g, (character) => lookAlikes[character] ?? character);
}

/** Whether little remains of a password once a guessable word is taken out of it. */
function isMostly(plain: string, word: string): boolean {
  return plain.includes(word) && plain.replaceAll(word, '').length < 6;
}

/** Whether a password is a common one, alone or with a few characters hung on to reach the length. */
function isCommon(plain: string): boolean {
  return commonPasswords.some((common) => {
    const word = plainForm(common);
    return plain === word || (word.length >= 6 && isMostly(plain, word));
  });
}

/** Words and rows of keys that lists of leaked passwords have in common. */
const commonPasswords: readonly string[] = `
  123456 1234567 12345678 123456789 1234567890 123123 123321 654321 987654321 111111 000000 112233
  121212 11111111 00000000 12341234 123qwe 1q2w3e 1q2w3e4r 1q2w3e4r5t 1qaz2wsx qazwsx qazwsxedc zaq12wsx
  qwerty qwertz azerty qwerty123 qwertyuiop qwertzuiop asdfgh asdfghjkl zxcvbn zxcvbnm asdf1234 qweasdzxc
  abc123 abcd1234 abcdef abcdefgh abcdefghijkl a1b2c3 a1b2c3d4 aa123456 aaaaaa abcabc
  password passwort passw0rd password1 password12 password123 mypassword newpassword changeme changeit
  letmein welcome welcome1 welcome123 default secret secret123 topsecret access login logmein admin
  admin123 administrator root rootroot toor guest guest123 user username test test123 testing testtest
  temp temppass temporary master masterkey superuser supervisor operator manager service backup
  iloveyou iloveu loveyou lovely love123 princess sunshine flower butterfly angel angels babygirl
  sweetheart darling honey chocolate cookie cupcake banana orange cherry strawberry rainbow unicorn
  dragon monkey tiger lion eagle falcon panther wolf shark dolphin horse kitten puppy bear turtle
  football baseball basketball soccer hockey rugby tennis golfer liverpool arsenal chelsea barcelona
  realmadrid juventus superman batman spiderman ironman wolverine starwars skywalker matrix pokemon
  pikachu naruto minecraft fortnite nintendo playstation xbox360 hello hello123 hellohello whatever
  trustno1 freedom shadow ninja killer hunter ranger soldier warrior phoenix thunder lightning
  mustang ferrari porsche mercedes corvette harley yamaha kawasaki samsung google facebook linkedin
  microsoft windows computer internet server network database oracle mysql postgres linux ubuntu
  january february august september october november december monday friday saturday sunday
  spring summer autumn winter spring2026 summer2026 autumn2026 winter2026 holiday christmas
  michael jennifer jessica ashley daniel thomas andrew joshua matthew robert william charlie jordan
  michelle amanda nicole samantha maggie buster ginger pepper tigger snoopy garfield
  jupyter jupyterhub notebook python python3 datascience anaconda student teacher school university
  correcthorsebatterystaple correcthorse openSesame opensesame swordfish mellon zorro blahblah foobar foobarbaz
  qwer1234 1234qwer poiuytrewq mnbvcxz lkjhgfdsa 0987654321 147258369 159357 159753 789456123 741852963
  55555555 666666 66666666 777777 7777777 88888888 999999 99999999 010203 101010 131313 232323
`
  .trim()
  .split(/\s+/);
