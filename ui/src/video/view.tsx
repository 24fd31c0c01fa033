// One video: it goes on where it was left, and says where it is.

import {
  type Client,
  type Comment,
  Heartbeats,
  type History,
  Live,
  openQueue,
  type Row,
  Viewer,
} from "@tideline/web";
import { artplayer } from "@tideline/web/artplayer";
import type Artplayer from "artplayer";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { tell, useShared } from "../context.js";
import { place } from "../words.js";
import { CLIP, CLIP_ID, scaleOf, startOf, stretched } from "./clip.js";
import { Comments } from "./comments.js";
import type { Taste } from "./rules.js";
import { shower } from "./rules.js";

/** The connector of this page's player. */
export type Connector = ReturnType<typeof artplayer>;

export function VideoView({ id }: { id: string }) {
  const { words, language, client, history, features, say } = useShared();
  const box = useRef<HTMLDivElement>(null);
  const [row, setRow] = useState<Row | null>(null);
  const [art, setArt] = useState<Artplayer | null>(null);
  const [connector, setConnector] = useState<Connector | null>(null);
  const taste = useRef<Taste>({ rules: [], level: 0, flags: new Map() });

  useEffect(() => {
    let close = () => {};
    let here = true;
    // One connection for marks and comments.
    const live = new Live(client);
    live.connect();
    const open = async () => {
      const [found, heartbeats, players] = await Promise.all([
        // It plays from the start where nobody says where it was left.
        history.progress("video", id).catch((error): { found: false } => {
          say(tell(words, error));
          return { found: false };
        }),
        beats(history, live),
        import("./player.js"),
      ]);
      if (!here || !box.current) return heartbeats.close();
      const was = found.found ? found : undefined;
      setRow(was ?? null);
      const comments = features.danmaku ? connect(client, id, live, taste) : null;
      const player = players.make(box.current, CLIP, language, comments?.options);
      comments?.attach(player);
      player.on("ready", () => {
        const scale = scaleOf(id, was?.duration_ms, player.duration);
        const start = startOf(was?.position_ms, scale, player.duration);
        if (start > 0) {
          player.seek = start;
          say(words.resumedAt(place(start * scale * 1000)));
        }
        const stop = heartbeats.watch(stretched(player.video, scale), {
          kind: "video",
          id,
          device: "web",
        });
        close = () => {
          stop();
          heartbeats.close();
          player.destroy();
        };
      });
      close = () => player.destroy();
      setArt(player);
      setConnector(comments);
    };
    open().catch((error) => say(tell(words, error)));
    return () => {
      here = false;
      close();
      live.close();
      setArt(null);
    };
    // Another language makes no other player: it goes on.
  }, [id, client, history, features]);

  // The player knows clicks alone; keys for the rest of the page are none of its.
  const hearKeys = (whether: boolean) => {
    if (art) Object.assign(art, { isFocus: whether });
  };
  const title = useMemo(
    () => row?.title ?? (id === CLIP_ID ? words.clipTitle : id),
    [row, id, words],
  );
  return (
    <>
      <div class="title-line">
        <h1>{title}</h1>
      </div>
      <div class={features.danmaku ? "watch with-list" : "watch"}>
        <div>
          <div
            ref={box}
            class="player"
            role="application"
            // biome-ignore lint/a11y/noNoninteractiveTabindex: it takes keys, as a media element does
            tabIndex={0}
            aria-label={words.player}
            onFocusIn={() => hearKeys(true)}
            onFocusOut={() => hearKeys(false)}
          />
          {id !== CLIP_ID && <p class="note">{words.standIn}</p>}
        </div>
        {features.danmaku && art && connector && (
          <Comments key={id} video={id} art={art} connector={connector} taste={taste} />
        )}
      </div>
    </>
  );
}

function connect(client: Client, id: string, live: Live, taste: { current: Taste }): Connector {
  const viewer = new Viewer(client, id, live);
  const shows = (comment: Comment) => shower(taste.current, (ms) => viewer.segmentOf(ms))(comment);
  return artplayer(client, id, { shows }, viewer);
}

async function beats(history: History, live: Live): Promise<Heartbeats> {
  // Each user's marks wait apart from others'.
  return new Heartbeats(history, await openQueue(`tideline-${history.client.user}`), { live });
}
